"""Files, threads, progress: what the operating system is asked for."""
