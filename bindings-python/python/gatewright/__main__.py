"""The program: `gatewright` or `python -m gatewright`."""

import signal
import sys

from gatewright._engine import run_program


def main() -> int:
    """Runs the program with this process's arguments; returns its exit code."""
    # Python's handlers only run when Python does: the program is to see signals itself, as when run alone.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_program(["gatewright", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
