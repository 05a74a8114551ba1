"""The entry point of `fembench`; an interruption gets one line from the start."""

import os
import signal
import sys


def main() -> int:
    """Run the command that was typed; returns its exit status."""
    usual = signal.getsignal(signal.SIGINT)
    if usual == signal.default_int_handler:  # not ignored, as under nohup
        signal.signal(signal.SIGINT, _end)
    from fembench.cli.main import main as run

    signal.signal(signal.SIGINT, usual)
    if sys.stdout:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # for this terminal
    return run()


def _end(number: int, frame: object) -> None:
    """End at once. An exception raised inside an import may be replaced by another one."""
    os.write(2, b"fembench: interrupted\n")
    os._exit(128 + number)
