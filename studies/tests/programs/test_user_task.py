"""Tasks of the user's own: read, predicted, run on ranks, checked."""

import numpy as np
import pytest
from planted_calibration import planted_calibration

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench_studies.programs import program_session
from fembench_studies.programs.cases import case_of, predicted
from fembench_studies.programs.job import launch
from fembench_studies.programs.kernels import just
from fembench_studies.programs.record import AppCase, load_app
from fembench_studies.programs.settings import ProgramSettings
from fembench_studies.programs.user_task import computed_again, digest, is_farm, kernel_of

OWN = """
import numpy as np

def make(task, tasks, size, seed):
    return [task, 10 * seed, 0.5]

def results(size):
    return size

def work(data, size):
    return np.full(size, data.sum())
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    return str(tmp_path / "own.py")


def planted(program, samples, **case):
    ranks = len(next(iter(samples.values())))
    messages = {"8": ((), *((1e-3,),) * (ranks - 1)), "4008": ((), *((3e-3,),) * (ranks - 1))}
    return planted_calibration(AppCase(program=program, ranks=ranks, **case), samples, messages)


def result(program, task=3, tasks=10, size=2, seed=4):
    kernel = kernel_of(program)
    return kernel.run(just, kernel.make(task, tasks, size, seed), size).tolist()


def test_a_python_file_gives_inputs_and_results(own):
    assert is_farm(own)
    assert result(own) == [43.5, 43.5]


def test_without_functions_for_them_the_input_is_the_number_and_the_result_one(tmp_path):
    (tmp_path / "own.py").write_text("def work(data, size):\n    return 100 * data[0] + data[1] + size\n")
    assert result(str(tmp_path / "own.py"), size=7) == [317.0]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("own.py", "x = 1", "expected a function work"),
        ("own.py", "1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_file_without_a_task_is_refused_in_one_line(tmp_path, name, text, message, refusal):
    (tmp_path / name).write_text(text)
    assert message in refusal("study", "app", str(tmp_path / name), "--results", str(tmp_path))


@pytest.mark.parametrize("name", ["own.txt", "nothing", "missing.py"])
def test_what_is_neither_a_program_nor_a_file_with_one_is_refused(tmp_path, name, refusal):
    assert "expected" in refusal("study", "app", str(tmp_path / name))


def test_a_result_of_another_length_is_refused(tmp_path):
    (tmp_path / "own.py").write_text("def work(data, size):\n    return [1.0, 2.0]\n")
    with pytest.raises(InputError, match=r"2 numbers; expected results\(size\) = 1"):
        result(str(tmp_path / "own.py"))


def test_results_are_computed_again(own):
    outputs = [np.array(result(own, task, 5)) for task in range(5)]
    assert computed_again(own, outputs, 5, 2, 4) == (2 * sum(range(5)) + 2 * 5 * 40.5, 0.0)
    outputs[4] = outputs[3]
    assert computed_again(own, outputs, 5, 2, 4)[1] > 1


def test_a_calibration_of_another_version_of_the_file_is_refused(own):
    settings = ProgramSettings(own, ranks=3, tasks=4)
    record = planted(own, {"task": ((1.0,), (1.0,), (1.0,))}, code=digest(own))
    found = predicted(case_of(settings, record), record)
    assert found.low == pytest.approx(2.0, abs=0.02)
    with open(own, "a") as file:
        file.write("\n")
    with pytest.raises(InputError, match=r"not a calibration of .* as it is now"):
        predicted(case_of(settings, record), record)


def test_ranks_that_find_another_file_do_not_run_it(own, tmp_path):
    case = case_of(ProgramSettings(own, ranks=2, tasks=2, repetitions=1), None)
    with open(own, "a") as file:
        file.write("\n")
    with pytest.raises(InputError, match="not the file that was there"):
        launch(case, id="own", scratch=tmp_path)


@pytest.mark.row("000:F3")
def test_a_task_of_the_user_is_predicted_run_and_scored(own, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(program_session, "MOST_CHANGE", 1e9)  # the machine of the tests may change
    words = ["study", "app", own, "--ranks", "2", "--tasks", "6", "--size", "3", "--results", str(tmp_path)]
    model, out = str(tmp_path / "model.json"), str(tmp_path / "run.json")
    assert main([*words, "--calibrate", "--samples", "3", "-o", model]) == 0
    assert main([*words, "--model", model, "--repetitions", "2", "-o", out]) == 0
    told = capsys.readouterr().out
    assert "own.py on 2 ranks: 54 (right)" in told
    assert "mean error" in told
    record = load_app(out)
    assert record.predicted.low > 0
    assert len(record.pace) == 2
    assert min(record.pace) > 0
    assert (len(record.seconds), sum(record.done[1]), record.value) == (2, 12, 3 * 15 + 6 * 3 * 0.5)
