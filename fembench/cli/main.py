"""The entry point `fembench VERB …`: verbs in the order of the work, one small module each.

A verb's module has a docstring (its first line is the help), `arguments(parser)` and
`run(options) -> exit status`. It imports what it needs inside `run`, so `--help` is quick.
Exit status: 0 good, 1 measured but invalid or failed, 2 your input, anything else is ours.
"""

import argparse
import contextlib
import errno
import importlib
import os
import pkgutil
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

import fembench.cli
from fembench.base.errors import FembenchError, InputError

FULL_OR_FORBIDDEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES)
EXTRAS = {"jinja2": "report", "markupsafe": "report", "matplotlib": "report"}  # package -> its extra
ORDER = ("doctor", "timers", "mesh", "run", "sweep", "check", "report")  # others follow by name
EPILOG = """first steps:
  fembench doctor                       what this machine has, and what is missing
  fembench run m1 --ranks 2             one case: 630 equations on two MPI ranks
  fembench sweep CAMPAIGN.toml          many cases, interleaved, resumable
  fembench report results/NAME          tables, plots and one HTML page
exit status: 0 good, 1 measured but invalid, 2 something in your input"""


def verbs() -> tuple[str, ...]:
    """Names of all verbs: every module beside this one."""
    found = {m.name for m in pkgutil.iter_modules(fembench.cli.__path__)} - {"main", "shared"}
    return tuple(v for v in ORDER if v in found) + tuple(sorted(found - set(ORDER)))


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line like all others."""

    def error(self, message: str) -> NoReturn:
        value = re.fullmatch(r"argument (\S+): (.*: expected a .*)", message)
        raise InputError(" ".join(value.groups()) if value else f"{message}; see {self.prog} --help")


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="fembench",
        description="Benchmark a cluster, equal or not, with a parallel finite-element code.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in verbs():
        module = importlib.import_module(f"fembench.cli.{verb}")
        text = (module.__doc__ or "").strip()
        child = commands.add_parser(
            verb,
            help=text.splitlines()[0] if text else "",
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.arguments(child)
        child.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run the verb, and turn what went wrong into one line and an exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    try:
        options = build_parser().parse_args(words[:end])
        options.after = words[end + 1 :]  # what follows `--` is for somebody else, such as PETSc
        with signals_raised():
            return int(options.run(options))
    except InputError as error:
        print(f"fembench: {error}", file=sys.stderr)
        return 2
    except FembenchError as error:
        print(f"fembench: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader (head, less) went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        print(
            f"fembench: {error.name} is not installed: pip install 'fembench[{extra}]' brings it",
            file=sys.stderr,
        )
        return 2
    except OSError as error:
        if error.errno not in FULL_OR_FORBIDDEN:
            raise
        print(
            f"fembench: cannot write {error.filename or 'a temporary file'}: {error.strerror}",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("fembench: interrupted", file=sys.stderr)
        return 130
    except EndedError as error:
        print(f"fembench: ended by {error}", file=sys.stderr)
        return 128 + error.number


class EndedError(BaseException):
    """A signal that asks the process to end; raised, so that ranks are ended and folders tidied up."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def signals_raised() -> Iterator[None]:
    """SIGTERM and SIGHUP become an EndedError, once; what nohup ignores stays ignored."""

    def end(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # a second one must not stop the tidying
        raise EndedError(number)

    here = threading.current_thread() is threading.main_thread()
    asked = (signal.SIGTERM, signal.SIGHUP) if here else ()
    before = [each for each in asked if signal.getsignal(each) == signal.SIG_DFL]
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in before:
            signal.signal(each, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
