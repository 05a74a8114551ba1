"""Where ranks run: host files, launchers, jobs from start to end, and why one failed."""
