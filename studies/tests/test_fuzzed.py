"""What fuzzing found in the readers of the studies."""

import pytest

from fembench.base.errors import LONGEST, InputError
from fembench_studies.pamela import machine_model, pamela_text, pasl

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("reader", "name", "text"),
    [
        (pasl.load, "x.pas", f"T{DIGITS} = B1(1) << NULL;\n"),
        (lambda path: pamela_text.parse(path.read_text()), "x.pam", "L = " + "(" * 3000),
        (machine_model.load, "x.txt", f"inter_sum_int[{DIGITS}]=[1;2]\n"),
    ],
)
def test_what_fuzzing_found_in_the_files_of_studies_is_refused_in_one_line(tmp_path, reader, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        reader(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) <= LONGEST + 1
