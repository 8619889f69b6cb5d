"""How large a download will be, asked of a real server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from installer.download_size import Download, measure

LENGTHS = {"/big": 190_000_000, "/small": 10_000_000}


class Handler(BaseHTTPRequestHandler):
    """Knows the length of two files."""

    def do_HEAD(self) -> None:
        self.send_response(200 if self.path in LENGTHS else 404)
        self.send_header("Content-Length", str(LENGTHS.get(self.path, 0)))
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_lengths_are_added_up(address: str) -> None:
    assert measure([f"{address}/big", f"{address}/small"]) == Download(2, 200_000_000)


def test_a_file_on_this_machine_costs_nothing(address: str) -> None:
    assert measure(["file:///wheels/torch.whl", f"{address}/small"]) == Download(2, 10_000_000, local=1)


def test_a_silent_server_makes_it_at_least(address: str) -> None:
    assert measure([f"{address}/big", f"{address}/gone", "http://127.0.0.1:9/x"]) == Download(
        3, 190_000_000, 0, 2
    )


@pytest.mark.parametrize(
    ("download", "words"),
    [
        (Download(), "it is installed already"),
        (Download(1, 190_000_000), "190 MB to download in 1 file"),
        (Download(25, 2_900_000_000), "2.9 GB to download in 25 files"),
        (Download(3, 190_000_000, 1, 1), "at least 190 MB to download in 2 files, 1 more on this machine"),
        (Download(2, 0, 2), "nothing to download, 2 files on this machine"),
    ],
)
def test_in_words(download: Download, words: str) -> None:
    assert str(download) == words
