"""Where ranks run: host files, launchers, starting and ending a job, and why a job left no result."""
