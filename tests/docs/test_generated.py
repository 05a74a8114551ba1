"""The generated reference, without Sphinx."""

import inspect
import re
import sys

import doc_pages
import msgspec

sys.path.insert(0, str(doc_pages.ROOT / "docs" / "_ext"))

import generated

import fembench
from fembench.cli.verbs import verbs
from fembench.methods.lookup import preconds, recurrences, storages
from fembench.records.case import FIELDS
from fembench.records.phases import NAMES


class Inner(msgspec.Struct):
    size: int  # in metres


class Outer(msgspec.Struct):
    """A thing."""

    name: str
    inner: tuple[Inner, ...] = ()  # [rank] its
    # two lines


def test_every_verb_and_option_is_on_the_page_of_the_command_line():
    page = generated.command_line()
    assert all(f"### fembench {verb}\n" in page for verb in verbs())
    assert "`--hostfile FILE" in page
    assert "### fembench mesh\n" in page
    assert "#### fembench mesh box\n" in page


def test_a_struct_is_shown_with_the_comments_of_its_fields_and_all_structs_in_it():
    assert generated.reached(Outer) == [Outer, Inner]
    page = generated.schema(Outer)()
    assert "A thing." in page
    assert "| `inner` | list\\[Inner\\] | `[]` | \\[rank\\] its two lines |" in page
    assert "| `size` | integer | required | in metres |" in page


def test_code_in_prose_keeps_the_blanks_around_it_and_headings_keep_their_capitals():
    assert generated.prose("after `--`  go\n to `a_b` or a_b") == "after `--` go to `a_b` or a\\_b"
    assert generated.sentence_case("rebalancing while CG runs") == "Rebalancing while CG runs"


def test_a_pair_of_different_types_shows_both():
    both = msgspec.inspect.type_info(tuple[int, float]), msgspec.inspect.type_info(tuple[float, float, float])
    assert [generated.type_name(kind) for kind in both] == ["[integer, number]", "list of 3 numbers"]


def test_every_declared_method_is_on_the_page_of_methods_with_its_cost():
    page = generated.methods()
    assert all(f"| `{m.name}` | " in page for m in (*storages(), *preconds(), *recurrences()))
    assert "| inverse 3x3 diagonal blocks | 4 | 0 |" in page  # read in both passes, two vectors' worth each
    assert (
        "| `pipelined` | one all-reduce per iteration, hidden behind product and preconditioner | 13 | 1 |"
        in page
    )


def test_every_mark_of_a_page_names_something_that_is_generated():
    pages = [page.read_text(encoding="utf-8") for page in doc_pages.pages()]
    marks = [mark[1] for page in pages for mark in generated.MARK.finditer(page)]
    assert set(marks) == set(generated.PAGES)


def test_the_page_of_phases_names_each_in_the_order_of_the_list():
    page = (doc_pages.ROOT / "docs" / "reference" / "phases.md").read_text(encoding="utf-8")
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == list(NAMES)


def test_every_function_method_and_exception_from_python_is_on_its_page_with_all_arguments():
    page = generated.python_api()
    sections = dict(re.findall(r"^#{3,4} (\S+)\n(.*?)(?=^##)", page, re.M | re.S))
    shared = doc_pages.ROOT.joinpath("docs/reference/api.md").read_text(encoding="utf-8")
    for name in set(fembench.__all__) - {"errors"}:
        section = sections[f"fembench.{name}"]
        for argument in inspect.signature(getattr(fembench, name)).parameters:
            assert f"{argument}:" in section, (name, argument)
            said = f"`{argument}`" in section or f"`{argument}`" in shared
            assert said or argument in ("mesh", "ranks"), (name, argument)
    assert "plot(name: str) -> Plot\n" in sections["plot"]
    assert "`cell_tags`" in sections["Mesh"]
    assert "`_" not in sections["Mesh"]
    assert "\nresults -> list[Result]\n" in sections["results"]
    assert all(f"| `{name}` | `" in page for name in fembench.errors.__all__)


def test_lines_of_a_docstring_that_name_arguments_become_a_list():
    text = "rounds: at most; pairs, sets: of runs; 0: none\n    and more"
    assert generated.listed(text) == "* `rounds`: at most\n* `pairs`, `sets`: of runs; 0: none and more"
    assert generated.listed("One sentence: no list.") == ""


def test_the_notebook_is_shown_with_what_it_printed():
    page = generated.notebook()
    assert "```python\nimport fembench\n" in page
    assert "{raw} html" in page


def test_every_field_of_a_case_is_described_on_its_page_and_in_the_schema_of_a_record():
    page, schema = generated.case_options(), generated.PAGES["record"]()
    for name, field in FIELDS.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` "))
        assert generated.prose(field.option.help) in row
        assert generated.prose(field.option.help) in schema


def test_the_glossary_has_one_entry_per_word_in_alphabetical_order():
    page = (doc_pages.ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [line.split(" | ")[0].removeprefix("| ").lower() for line in page.splitlines()[6:]]
    assert len(words) > 50
    assert words == sorted(set(words))
