"""The program: `gatewright` or `python -m gatewright`."""

import signal
import sys

from gatewright._engine import run_program


def main() -> int:
    """Runs the program with this process's arguments; returns its exit code."""
    # Python's handlers only run when Python does: the program is to see signals itself, as when run alone.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_program(["gatewright", *sys.argv[1:]], _scripts)


def _scripts() -> list[str]:
    """The script folders of the installed packages, which contain `gatewright-server` if it is installed."""
    # Only commands of the server ask.
    import sysconfig

    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    return [sysconfig.get_path("scripts", scheme) for scheme in schemes]


if __name__ == "__main__":
    sys.exit(main())
