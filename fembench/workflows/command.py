"""What commands need beside their workflow: settings, version, formats."""

from fembench.host.build import version_text
from fembench.launch.launchers import LAUNCHERS, MAP_BY, use_settings
from fembench.model.launcher_files import LAUNCHER_FILES
from fembench.partition.maps import MAPS
from fembench.weights.export import EXPORTS

__all__ = ["EXPORTS", "LAUNCHER_FILES", "LAUNCHER_NAMES", "MAPS", "MAP_BY", "use_settings", "version_text"]

LAUNCHER_NAMES = ", ".join(one.name for one in LAUNCHERS)
