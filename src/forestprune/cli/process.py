"""The process that runs one command: its streams are open, and it ends in order when told to."""

import os
import signal
import sys
from typing import Any

TERMINATED = 128 + signal.SIGTERM


def own_process() -> None:
    """Make sure that what is written goes somewhere, and that nothing half-written stays."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        # Names may have letters that a terminal does not know.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _end)


def _end(*_: Any) -> None:
    raise SystemExit(TERMINATED)
