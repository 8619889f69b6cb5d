"""What every test stands on: a home folder of its own, the starter model, fixed seeds, no network.

Tests never see the person's data: OCTAVO_HOME is a fresh folder, shared by the processes of one test run, in
which only the downloaded models are linked. Processes that tests start inherit all of this.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import Home
from installer.starter import octavo_home, starter

SETTINGS = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "localhost,127.0.0.1,::1",
    "OMP_NUM_THREADS": "1",  # the machine's cores are shared by the test processes
    "PYTHONHASHSEED": "0",
    "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",  # a person's own is not for tests
    "TOKENIZERS_PARALLELISM": "false",
    "TRITON_INTERPRET": "1",  # must be set before Triton is imported, whichever test does so first
}
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is imported: the environment of this run. Worker processes inherit it."""
    if "OCTAVO_TEST_HOME" in os.environ:
        return
    os.environ.update(SETTINGS)
    real = octavo_home()
    home = Path(tempfile.mkdtemp(prefix="octavo test é "))  # a space and an accent, as homes have
    for file in real.glob("models/*/*.gguf"):
        _link(file.resolve(), home / file.relative_to(real))
    os.environ["OCTAVO_TEST_REAL_HOME"] = str(real)
    os.environ["OCTAVO_HOME"] = os.environ["OCTAVO_TEST_HOME"] = str(home)
    # Compiled afresh for each run: Numba does not notice a change in a function that another file calls.
    os.environ["NUMBA_CACHE_DIR"] = str(Home(home).compiled)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the first process, not a worker
        shutil.rmtree(os.environ["OCTAVO_TEST_HOME"], ignore_errors=True)


def _link(file: Path, target: Path) -> None:
    """The same file under another name: deleting it there leaves it here."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for way in (os.link, os.symlink, shutil.copyfile):
        try:
            way(file, target)
            return
        except OSError:
            continue


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """SmolLM2-135M-Instruct.Q4_1.gguf, a real model of 93 MB."""
    place = starter(Path(__file__).parent.parent).place
    path = Path(os.environ["OCTAVO_TEST_HOME"]) / place
    if not path.is_file():
        real = Path(os.environ["OCTAVO_TEST_REAL_HOME"]) / place
        pytest.fail(f"The starter model is not at {real}. `python3 -m installer test` fetches it.")
    return path


@pytest.fixture(autouse=True)
def _same_every_time() -> None:
    """Fixed seeds; torch on one thread, if it is loaded at all."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A connection to anything but this machine is a failure of the test."""
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in LOOPBACK:
            raise AssertionError(f"A test tried to connect to {address[0]}.")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", only_here)
    yield
