"""Run the kernels' tests on other releases of Triton, each in a folder of its own, out of the repository.

    python -m tests.kernels.triton.versions [RELEASE ...] [--folder PATH]

Without a release: 3.6, which torch 2.11 brings, and the newest there is. The folder keeps what is fetched.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.source_tree import ROOT

RELEASES = ("3.6.*", ">=3.8")
TESTS = "tests/kernels/triton"


def run_on(release: str, folder: Path) -> bool:
    """Whether the tests pass on a release, fetched into the folder if it is not there."""
    place = folder / release.strip("*.<>=")
    wanted = f"triton{release}" if release[0] in "<>=" else f"triton=={release}"
    if not (place / "triton").is_dir():
        command = ["pip", "install", "--quiet", "--no-deps", "--target", str(place), wanted]
        subprocess.run([sys.executable, "-m", *command], check=True)
    environment = os.environ | {"PYTHONPATH": str(place), "TRITON_CACHE_DIR": str(folder / "cache")}
    code = "import triton; print('Triton', triton.__version__, 'in', triton.__path__[0], flush=True)"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    command = ["pytest", "-q", "-p", "no:cacheprovider", TESTS]
    return not subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.triton.versions")
    parser.add_argument("releases", nargs="*", default=RELEASES, help="as pip names them: 3.6.*")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "octavo-triton")
    asked = parser.parse_args()
    return sum(not run_on(release, asked.folder) for release in asked.releases)


if __name__ == "__main__":
    sys.exit(main())
