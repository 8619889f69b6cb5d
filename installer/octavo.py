"""What the installed word `octavo` runs: `uninstall` is the installer's, every other word the program's.

Both mind the data folder that was chosen at the installation.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from .manifest import mind_home

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT.parent / "installed.json"  # beside the version; a checkout has none


def main(words: list[str]) -> int:
    """The exit code, where it is the installer's; the program ends the process with its own."""
    if words[:1] == ["uninstall"]:
        from .commands import main as installer

        return installer(words)
    mind_home(MANIFEST)
    runpy.run_module("ui", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
