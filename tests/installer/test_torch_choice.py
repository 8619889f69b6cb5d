"""Which build of PyTorch, and why: a table of machines, PyTorch's page, and an index that does not answer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from installer.accelerator import Accelerator
from installer.errors import SetupError
from installer.torch_choice import BEFORE, INDEX, OLDEST, ORDINARY, Build, Host, ask, choose, wanted
from tests.source_tree import ROOT

LINUX, ARM = Host("linux", "x86_64", "3.12"), Host("linux", "aarch64", "3.12")
WINDOWS, MAC = Host("win32", "AMD64", "3.12"), Host("darwin", "arm64", "3.12")


def nvidia(cuda: tuple[int, int], capability: tuple[int, int]) -> Accelerator:
    return Accelerator("nvidia", "Card", cuda=cuda, capability=capability)


@pytest.mark.parametrize(
    ("card", "host", "label", "reason"),
    [
        (Accelerator("none"), LINUX, "cpu", "no graphics card was found"),
        (Accelerator("none"), WINDOWS, "", "no graphics card was found"),
        (nvidia((13, 0), (9, 0)), LINUX, "cu130", "Card, driver for CUDA 13.0: the build for CUDA 13.0"),
        (nvidia((13, 2), (12, 0)), WINDOWS, "cu130", "driver for CUDA 13.2"),
        (nvidia((13, 0), (6, 1)), LINUX, "cu126", "the build for CUDA 12.6"),
        (nvidia((12, 9), (12, 0)), LINUX, "cu129", "the build for CUDA 12.9"),
        (nvidia((12, 6), (8, 9)), LINUX, "cu126", "the build for CUDA 12.6"),
        (nvidia((12, 6), (12, 0)), LINUX, "cpu", "a newer driver may help"),
        (nvidia((11, 4), (8, 0)), LINUX, "cpu", "CUDA 12.6 is the least"),
        (Accelerator("nvidia", usable=False), LINUX, "cpu", "install it and start again"),
        (Accelerator("amd", architecture="gfx1100"), LINUX, "rocm7.2", "AMD gfx1100: the build for ROCm 7.2"),
        (Accelerator("amd", architecture="gfx803"), LINUX, "cpu", "no build for this AMD card (gfx803)"),
        (Accelerator("amd", usable=False), WINDOWS, "", "but not its driver"),
        (Accelerator("intel", usable=False), LINUX, "cpu", "does not use Intel's graphics yet"),
        (Accelerator("apple", "Apple M4"), MAC, "", "Apple M4: the ordinary build uses its graphics"),
    ],
)
def test_wanted(card: Accelerator, host: Host, label: str, reason: str) -> None:
    build = wanted(card, host)
    assert build.label == label
    assert reason in build.reason


def test_a_mac_with_an_intel_processor_is_refused() -> None:
    with pytest.raises(SetupError, match="no builds for Macs with Intel processors"):
        wanted(Accelerator("none"), Host("darwin", "x86_64", "3.12"))


def page(*names: str) -> str:
    """PyTorch's index page, as it is written."""
    links = [
        f'<a href="/whl/{name.replace("+", "%2B")}#sha256=00" data-dist-info>x</a><br/>' for name in names
    ]
    return f"<!DOCTYPE html><html><body><h1>Links for torch</h1>{''.join(links)}</body></html>"


PAGE = page(
    "torch-2.10.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.12.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.12.1+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.13.0+cpu-cp312-cp312-manylinux_2_28_aarch64.whl",
    "torch-2.13.0+cpu-cp313-cp313t-manylinux_2_28_x86_64.whl",
    "torch-2.13.0+cpu-cp312-cp312-win_amd64.whl",
    "torch-2.14.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.13.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl",
)


@pytest.mark.parametrize(
    ("label", "host", "version"),
    [
        ("cpu", LINUX, "2.12.1+cpu"),
        ("cpu", ARM, "2.13.0+cpu"),
        ("cpu", Host("linux", "x86_64", "3.11"), "2.13.0+cpu"),
        ("cpu", WINDOWS, "2.13.0+cpu"),
        ("cu126", LINUX, "2.13.0+cu126"),
    ],
)
def test_the_newest_that_fits(label: str, host: Host, version: str) -> None:
    choice = choose(Build(label, "Why."), host, PAGE)
    assert choice.arguments == (f"torch=={version}", "--extra-index-url", f"{INDEX}/{label}")
    assert choice.reason == "Why."


@pytest.mark.parametrize(
    ("label", "answer", "reason"),
    [
        ("cpu", None, "Why. PyTorch's own index cannot be reached, so the build comes from PyPI."),
        (
            "cu130",
            PAGE,
            "Why. PyTorch's own index has no cu130 build for Python 3.12, so the build comes from PyPI.",
        ),
        ("", None, "Why."),
    ],
)
def test_else_the_ordinary_index(label: str, answer: str | None, reason: str) -> None:
    choice = choose(Build(label, "Why."), LINUX, answer)
    assert (choice.arguments, choice.reason) == ((ORDINARY,), reason)


def test_the_range_is_the_project_s() -> None:
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = re.search(r"torch>=(\d+)\.(\d+),<(\d+)\.(\d+)", " ".join(needs))
    assert found and tuple(map(int, found.groups())) == (*OLDEST, *BEFORE)


@contextmanager
def index(holds_back: bool) -> Iterator[tuple[str, list[str]]]:
    """An index of wheels on this machine, and the paths it was asked for; or one that never answers."""
    asked: list[str] = []
    ended = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if holds_back:
                ended.wait()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/whl", asked
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_index_is_asked_once() -> None:
    with index(holds_back=False) as (address, asked):
        assert ask(Build("cpu", ""), address) == PAGE
    assert asked == ["/whl/cpu/torch/"]


def test_an_index_that_is_silent_or_away_counts_as_unreachable() -> None:
    with index(holds_back=True) as (address, asked):
        assert ask(Build("cpu", ""), address, patience=0.2) is None
    assert asked == ["/whl/cpu/torch/"]
    assert ask(Build("cpu", ""), "http://127.0.0.1:9/whl") is None
