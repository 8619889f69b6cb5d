"""Downloads side by side: in line, paused, resumed, thrown away, failed, found again after a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.errors import AppError, PullFailed
from app.models.catalogue import Model, Variant
from app.models.downloads import Download, Downloads
from app.progress import Progress

PATIENCE_S = 20


class FakeFetch:
    """Brings 1000 bytes, step by step as the test lets it."""

    def __init__(self, id: str = "a", error: Exception | None = None) -> None:
        self.variant = Variant("bf16", repo="maker/a")
        self.model = Model(id, id.upper(), "MIT", 10, 5, (self.variant,))
        self.bytes, self.have, self.error = 1000, 0, error
        self.steps: list[int] = []
        self.go, self.told = threading.Semaphore(0), threading.Semaphore(0)
        self.running = threading.Lock()
        self.ended = threading.Event()

    def run(self, progress: Progress) -> Path:
        assert self.running.acquire(blocking=False)  # never twice at once
        try:
            progress("fetching", self.have / self.bytes)
            while self.have < self.bytes:
                self.told.release()
                assert self.go.acquire(timeout=PATIENCE_S)
                if self.error:
                    raise self.error
                progress("fetching", (self.have + 250) / self.bytes)
                self.have += 250
            progress("checking", 1.0)
            return Path()
        finally:
            self.running.release()
            self.ended.set()

    def discard(self) -> int:
        assert not self.running.locked()
        had, self.have = self.have, 0
        return had

    def begun(self) -> None:
        assert self.told.acquire(timeout=PATIENCE_S)


@pytest.fixture
def downloads() -> Iterator[Downloads]:
    made = Downloads(at_once=1)
    yield made
    made.close()


def until(downloads: Downloads, right: Callable[[list[Download]], bool]) -> list[Download]:
    """What there is, once it is right."""
    end = threading.Event()
    for _ in range(PATIENCE_S * 100):
        if right(views := downloads.views()):
            return views
        end.wait(0.01)
    raise AssertionError(downloads.views())


def states(downloads: Downloads) -> list[str]:
    return [each.state for each in downloads.views()]


def test_one_after_another(downloads: Downloads) -> None:
    first, second, here = FakeFetch("a"), FakeFetch("b"), threading.Event()
    assert downloads.start(first, here.set) == "a@bf16"
    downloads.start(second)
    first.begun()
    assert states(downloads) == ["fetching", "queued"]
    first.go.release(4)
    assert here.wait(PATIENCE_S)
    second.begun()
    assert [each.id for each in downloads.views()] == ["b"]
    second.go.release(4)
    until(downloads, lambda views: not views)


def test_asked_for_twice_it_is_fetched_once(downloads: Downloads) -> None:
    fetch = FakeFetch()
    assert downloads.start(fetch) == downloads.start(FakeFetch())
    fetch.begun()
    assert downloads.start(FakeFetch()) == "a@bf16" and states(downloads) == ["fetching"]
    fetch.go.release(4)
    until(downloads, lambda views: not views)


def test_progress_speed_and_time_left(downloads: Downloads) -> None:
    fetch = FakeFetch()
    downloads.start(fetch)
    fetch.begun()
    fetch.go.release()
    fetch.begun()
    (view,) = downloads.views()
    assert (view.name, view.format, view.done, view.bytes, view.message) == ("A", "bf16", 250, 1000, "")
    assert view.speed > 0 and view.left_s is not None and view.left_s > 0


def test_paused_and_resumed_it_goes_on(downloads: Downloads) -> None:
    fetch = FakeFetch()
    key = downloads.start(fetch)
    fetch.begun()
    fetch.go.release()
    fetch.begun()
    downloads.pause(key)
    assert states(downloads) == ["paused"]
    downloads.resume(key)  # while it still waits for its last byte
    fetch.go.release()
    assert fetch.ended.wait(PATIENCE_S)
    fetch.begun()
    assert downloads.views()[0].done == 250 and states(downloads) == ["fetching"]
    fetch.go.release(3)
    until(downloads, lambda views: not views)
    assert fetch.have == 1000


def test_a_paused_one_lets_the_next_begin(downloads: Downloads) -> None:
    first, second = FakeFetch("a"), FakeFetch("b")
    key = downloads.start(first)
    downloads.start(second)
    first.begun()
    downloads.pause(key)
    second.begun()
    assert states(downloads) == ["paused", "fetching"]
    downloads.resume(key)
    assert states(downloads) == ["queued", "fetching"]
    first.go.release()
    second.go.release(4)
    first.begun()


def test_thrown_away(downloads: Downloads) -> None:
    fetch = FakeFetch()
    key = downloads.start(fetch)
    fetch.begun()
    fetch.go.release()
    fetch.begun()
    assert downloads.cancel(key) == 250 and not downloads.views()
    fetch.go.release()
    until(downloads, lambda views: fetch.have == 0)
    with pytest.raises(AppError, match="Nothing called a@bf16 is being fetched"):
        downloads.cancel(key)


def test_thrown_away_and_asked_for_again_it_begins_anew_when_the_last_one_has_ended(
    downloads: Downloads,
) -> None:
    fetch = FakeFetch()
    key = downloads.start(fetch)
    fetch.begun()
    fetch.go.release()
    fetch.begun()
    for _ in range(20):
        assert downloads.cancel(key) == 250 and downloads.start(fetch) == key
        assert states(downloads) == ["fetching"]
    fetch.go.release()  # the first one has only waited for a last byte
    fetch.begun()
    assert downloads.views()[0].done == 0 and states(downloads) == ["fetching"]
    fetch.go.release(4)
    until(downloads, lambda views: not views)


def test_thrown_away_while_it_is_in_line_again(downloads: Downloads) -> None:
    first, second = FakeFetch("a"), FakeFetch("b")
    key = downloads.start(first)
    downloads.start(second)
    first.begun()
    first.go.release()
    first.begun()
    downloads.pause(key)
    second.begun()
    downloads.resume(key)
    assert states(downloads) == ["queued", "fetching"] and first.have == 250
    downloads.cancel(key)
    first.go.release()  # its thread has only waited for a last byte
    until(downloads, lambda views: first.have == 0)
    second.go.release(4)


def test_failed_and_tried_again(downloads: Downloads) -> None:
    fetch = FakeFetch(error=PullFailed("The hub answered 503."))
    key = downloads.start(fetch)
    fetch.begun()
    fetch.go.release()
    (view,) = until(downloads, lambda views: views[0].state == "failed")
    assert view.message == "The hub answered 503."
    fetch.error = None
    downloads.resume(key)
    fetch.begun()
    fetch.go.release(4)
    until(downloads, lambda views: not views)


def test_what_nobody_foresaw_is_a_sentence_too(downloads: Downloads) -> None:
    fetch = FakeFetch(error=RuntimeError("boom"))
    downloads.start(fetch)
    fetch.go.release()
    (view,) = until(downloads, lambda views: views[0].state == "failed")
    assert view.message.startswith("The download failed")


def test_found_after_a_restart_it_waits_for_the_person(downloads: Downloads) -> None:
    fetch = FakeFetch()
    fetch.have = 500
    downloads.found(fetch)
    (view,) = downloads.views()
    assert (view.state, view.done, view.bytes) == ("paused", 500, 1000)
    downloads.resume(view.key)
    fetch.begun()
    fetch.go.release(2)
    until(downloads, lambda views: not views)


def test_closing_stops_and_begins_nothing(downloads: Downloads) -> None:
    first, second = FakeFetch("a"), FakeFetch("b")
    downloads.start(first)
    downloads.start(second)
    first.begun()
    first.go.release()
    downloads.close()
    assert first.ended.is_set() and first.have <= 500 and not second.ended.is_set()
