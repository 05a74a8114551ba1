"""Where ranks run: host files, launchers, starting a job and ending it, why a job left no result."""
