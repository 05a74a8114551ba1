"""The entry point `fembench VERB …`: finds the verb, parses its options and runs it.

Exit status: 0 good, 1 measured but invalid or failed, 2 an error in the input.
"""

import contextlib
import errno
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import TypeVar

from fembench.base.errors import (
    CopyError,
    EndedError,
    FembenchError,
    InputError,
    RunFailedError,
    options_named,
    shown,
    signals_raised,
)
from fembench.base.plugins import needed
from fembench.base.terminal import discard_output, fitting
from fembench.cli.parser import columns, option_strings
from fembench.cli.verbs import check_verb, listing, top_parser, verb_parser

T = TypeVar("T")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
OUT_OF_REACH = (errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP)  # also of what is only read
PAGE = dict.fromkeys(("jinja2", "markupsafe", "matplotlib"), "matplotlib jinja2")
EXTRAS = {name: name for name in ("otf2", "pyarrow", "ruptures", "shtab")} | PAGE  # what to install


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run the verb, and turn errors into one line and an exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with fitting(sys.stderr, contextlib.redirect_stderr):
        return _told(_written_out, _told(_run, words))


def _told(function: Callable[[T], int], given: T) -> int:
    """The exit status of a function, or of what it raises, which is told in one line."""
    try:
        return function(given)
    except InputError as error:
        if not isinstance(error, CopyError) or error.first:
            print(f"fembench: {error}", file=sys.stderr)
        return 2
    except FembenchError as error:
        if isinstance(error, RunFailedError) and error.output:
            print(error.output, file=sys.stderr)
        print(f"fembench: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader (head, less) went away
        discard_output()
        return 0
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        how = f"install it with: {sys.executable} -m pip install {extra}"
        print(f"fembench: {error.name} is not installed; {how}", file=sys.stderr)
        return 2
    except MemoryError as error:
        said = f" ({shown(error, 200)})" if str(error) else ""
        print(f"fembench: not enough memory{said}; expected a smaller mesh", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in FULL + OUT_OF_REACH:
            raise
        cannot = "cannot write" if error.errno in FULL else "cannot read or write"
        name = shown(
            error.filename or f"standard output, or a file of the results or in {tempfile.gettempdir()}", 200
        )
        print(f"fembench: {cannot} {name}: {error.strerror}", file=sys.stderr)
        return 2
    except UnicodeEncodeError as error:  # file names that no record can hold
        print(f"fembench: {shown(ascii(error.object), 200)}: expected UTF-8", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        return _interrupted(str(error))
    except EndedError as error:
        print(f"fembench: ended by {error}", file=sys.stderr)
        return 128 + error.number
    except Exception as error:
        if _from_interruption(error):
            return _interrupted()
        if not str(error).startswith("Symlink loop"):  # what Path.resolve finds before Python 3.13
            raise
        print(f"fembench: {error}", file=sys.stderr)
        return 2


def _written_out(status: int) -> int:
    """The status, if all that was printed can be written, or nobody reads it. Raises OSError."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        discard_output()
        if status != 2 and error.errno != errno.EPIPE:  # 2: which has been told
            raise OSError(error.errno, error.strerror, "standard output") from error
    return status


def _interrupted(then: str = "") -> int:
    print("; ".join(filter(None, ["fembench: interrupted", then])), file=sys.stderr)
    return 130


def _from_interruption(error: BaseException | None) -> bool:
    """Whether an interruption led to this error; in making a class, it is a RuntimeError."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _run(words: list[str]) -> int:
    """The exit status of a command. Errors are raised."""
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words or words[0].startswith("-"):
        return _without_verb(words)
    check_verb(words[0])
    end = words.index("--") if "--" in words else len(words)
    parser = verb_parser(words[0])
    options = parser.parse_args(_spelled_out(words[:end])[1:])
    options.after = words[end + 1 :]  # what follows `--` is passed on, for example to PETSc
    from fembench.workflows.command import use_settings

    use_settings(vars(options))
    stdout = None if getattr(options, "json", False) else sys.stdout  # JSON stays as it is
    named = options_named(option_strings(parser))
    with signals_raised(), fitting(stdout, contextlib.redirect_stdout), named:
        return int(options.run(options))


def _spelled_out(words: list[str]) -> list[str]:
    """The words, completed by the study if only an experiment is named. Raises InputError."""
    if words[0] != "study":
        return words
    return list(needed("verbs", "study", "fembench study").spelled_out(words))


def _without_verb(words: list[str]) -> int:
    """--help, --version and --completion. Raises InputError if there is nothing."""
    if not words:
        raise InputError("expected a verb, such as 'fembench doctor'; see fembench --help")
    if words[0] in ("-h", "--help"):
        print(listing(columns()))
        return 0
    options = top_parser().parse_args(words)
    if options.version:
        from fembench.workflows.command import version_text

        print(version_text())
    if options.completion:
        from fembench.cli.verbs import completion

        print(completion(options.completion), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
