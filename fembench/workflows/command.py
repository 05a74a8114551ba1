"""What every command needs beside its workflow: launcher settings, the version."""

from fembench.host.build import version_text
from fembench.launch.launchers import LAUNCHERS, use_settings

__all__ = ["LAUNCHER_NAMES", "use_settings", "version_text"]

LAUNCHER_NAMES = ", ".join(one.name for one in LAUNCHERS)
