"""The entry of the installed program. Not in the package: Ctrl-C is quiet while that is imported, too."""

import signal


def main() -> int:
    """Runs the program with this process's arguments; returns its exit code."""
    # As `gatewright.__main__` does it for the program itself, which sees signals as when it runs alone.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gatewright.__main__ import main as run

    return run()
