"""A variant from the hub by the real client: all its files or none, at one revision, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.access.instance import FileLock
from app.errors import HubFailed, PullFailed
from app.models.catalogue import Variant
from app.models.hub_client import Hub
from app.models.hub_fetch import HubFetch
from app.models.installed import read_record
from app.models.model_store import ModelStore
from app.settings import Home, Settings
from tests.app.fake_hub import FakeHub, Repo, folder_repo, gguf_repo, hub_catalogue, serving_hub, sha256

GGUF = Variant("GGUF Q4_0", repo="maker/Tiny-GGUF")
FOLDER = Variant("bf16", repo="maker/Tiny")
TOKEN = "hf_a-token-that-must-not-get-out"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving_hub(monkeypatch) as hub:
        hub.token = TOKEN
        hub.add(gguf_repo())
        hub.add(folder_repo())
        yield hub


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(Home(tmp_path), hub_catalogue(GGUF, FOLDER))


def fetch_of(store: ModelStore, hub: FakeHub, variant: Variant = GGUF, **more: object) -> HubFetch:
    settings = Settings(Home(store.folder.parent), hub=hub.url)
    asked = Hub(settings, lambda: TOKEN)
    return HubFetch(store, asked, store.catalogue["tiny"], variant, **more)  # type: ignore[arg-type]


def quiet(stage: str, part: float) -> None: ...


class Killed(Exception): ...


def test_one_file(store: ModelStore, hub: FakeHub) -> None:
    parts: list[tuple[str, float]] = []
    repo = hub.repos[GGUF.repo]
    path = fetch_of(store, hub).run(lambda stage, part: parts.append((stage, part)))
    assert path == store.folder / "tiny" / "gguf-q4_0" == store.find("tiny").path
    assert sorted(each.name for each in path.iterdir()) == ["octavo.json", "tiny-Q4_0.gguf"]
    assert (path / "tiny-Q4_0.gguf").read_bytes() == repo.files["tiny-Q4_0.gguf"]
    record = read_record(path)
    assert record and (record.repo, record.revision, record.format) == (repo.name, repo.revision, "GGUF Q4_0")
    assert record.files == (("tiny-Q4_0.gguf", 300_000, sha256(repo.files["tiny-Q4_0.gguf"])),)
    assert [part for _, part in parts] == [*sorted(part for _, part in parts[:-1]), 1.0]
    assert store.state(store.catalogue["tiny"]) == "ready" and oct(path.parent.stat().st_mode)[-3:] == "700"
    asked = len(hub.asked)
    assert fetch_of(store, hub).run(quiet) == path and len(hub.asked) == asked


def test_a_folder_without_what_could_run(store: ModelStore, hub: FakeHub) -> None:
    path = fetch_of(store, hub, FOLDER).run(quiet)
    assert sorted(each.name for each in path.iterdir()) == [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "octavo.json",
        "tokenizer.json",
    ]
    assert store.find("tiny@bf16").path == path


def test_a_file_in_parts(store: ModelStore, hub: FakeHub) -> None:
    names = [f"Q4_0/tiny-Q4_0-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    others = {"tiny-Q8_0.gguf": b"q8" * 800, "mmproj-tiny-Q4_0.gguf": b"image" * 400}
    hub.add(Repo(GGUF.repo, {**{name: name.encode() * 40 for name in names}, **others}))
    path = fetch_of(store, hub).run(quiet)
    assert sorted(path.glob("*.gguf")) == [path / name.removeprefix("Q4_0/") for name in names]


@pytest.mark.parametrize("percent", [0, 30, 66, 99])
def test_stopped_anywhere_it_goes_on_there_without_asking_again(
    store: ModelStore, hub: FakeHub, percent: int
) -> None:
    def stop(stage: str, part: float) -> None:
        if part >= percent / 100:
            raise Killed

    with pytest.raises(Killed):
        fetch_of(store, hub, FOLDER).run(stop)
    assert store.state(store.catalogue["tiny"]) == "on the hub" and not (store.folder / "tiny/bf16").exists()
    hub.repos[FOLDER.repo].about["sha"] = "f" * 40  # what has begun stays with its revision
    whole = {name for name in os.listdir(fetch_of(store, hub, FOLDER).draft) if name.endswith("safetensors")}
    hub.asked.clear()
    path = fetch_of(store, hub, FOLDER).run(quiet)
    record = read_record(path)
    assert record and record.revision == hub.repos[FOLDER.repo].revision and not hub.paths("/api/")
    again = {path.rpartition("/")[2] for path in hub.paths(f"/{FOLDER.repo}")}
    assert not again & whole
    for name, size, _ in record.files:
        assert (path / name).stat().st_size == size


def test_two_processes(store: ModelStore, hub: FakeHub) -> None:
    (store.folder / "tiny").mkdir(parents=True)
    other = FileLock(store.folder / "tiny" / ".gguf-q4_0.lock")
    with pytest.raises(PullFailed, match="Another process is fetching tiny"):
        fetch_of(store, hub).run(quiet)
    with pytest.raises(PullFailed, match="Another process is fetching tiny"):
        fetch_of(store, hub).discard()
    other.close()
    assert fetch_of(store, hub).run(quiet).exists()


def test_the_folder_is_taken_away_meanwhile(store: ModelStore, hub: FakeHub) -> None:
    fetch = fetch_of(store, hub)

    def remove(stage: str, part: float) -> None:
        shutil.rmtree(fetch.draft, ignore_errors=True)

    with pytest.raises(PullFailed, match=r"was taken away while tiny was fetched\. Try again"):
        fetch.run(remove)
    assert fetch.run(quiet).exists()


def test_a_full_disk(store: ModelStore, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = fetch_of(store, hub)
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patched:
        patched.setattr("app.models.disk.shutil.disk_usage", lambda path: usage(10**9, 0, 400_000))
        with pytest.raises(PullFailed, match=r"Tiny needs 300\.0 kB more .* only 400\.0 kB are free"):
            fetch.run(quiet)
    with monkeypatch.context() as patched:

        def full(file: int) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr("app.models.transfer.os.fsync", full)
        with pytest.raises(PullFailed, match=r"No space left on device \(.* are free, .* still to come\)"):
            fetch.run(quiet)
    assert fetch.have == 300_000 and fetch.run(quiet).exists()


def test_the_quota(store: ModelStore, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.models.disk.GB", 250_000)
    with pytest.raises(PullFailed, match=r"models take .* of the 250\.0 kB that they may \(models_quota\)"):
        fetch_of(store, hub, quota=1).run(quiet)
    assert fetch_of(store, hub, quota=2).run(quiet).exists()


def test_what_has_come_can_be_thrown_away(store: ModelStore, hub: FakeHub) -> None:
    def stop(stage: str, part: float) -> None:
        if part > 0.3:
            raise Killed

    with pytest.raises(Killed):
        fetch_of(store, hub).run(stop)
    fetch = fetch_of(store, hub)
    assert fetch.have == fetch.discard() > 90_000 and fetch.have == fetch.discard() == 0


def test_a_gated_repository_needs_the_token(store: ModelStore, hub: FakeHub) -> None:
    hub.repos[GGUF.repo].gated = True
    stranger = HubFetch(
        store, Hub(Settings(Home(store.folder.parent), hub=hub.url)), store.catalogue["tiny"], GGUF
    )
    with pytest.raises(PullFailed, match=r"gated or private\. Give Octavo a token"):
        stranger.run(quiet)
    assert fetch_of(store, hub).run(quiet).exists()
    cdn = [headers for path, headers in hub.asked if path.startswith("/cdn")]
    assert cdn  # the same host here; test_transfer.py has another


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"x-Q8_0.gguf": b"x" * 2000}, "has no Q4_0 file at the hub"),
        ({"../../x-Q4_0.gguf": b"x" * 2000}, None),
        ({"a/C:x-Q4_0.gguf": b"x" * 2000}, "which no model file may be called"),
        ({"x y-Q4_0.gguf": b"x" * 2000}, "which no model file may be called"),
        ({"x\x00-Q4_0.gguf": b"x" * 2000}, "which no model file may be called"),
        ({".x-Q4_0.gguf": b"x" * 2000}, "which no model file may be called"),
        ({"-Q4_0-" + "x" * 300 + ".gguf": b"x" * 2000}, "which no model file may be called"),
    ],
)
def test_names_that_lead_elsewhere(
    store: ModelStore, hub: FakeHub, files: dict[str, bytes], said: str | None, tmp_path: Path
) -> None:
    hub.add(Repo(GGUF.repo, files))
    before = {path for path in tmp_path.parent.rglob("*") if store.folder not in path.parents}
    with pytest.raises(PullFailed, match=said):
        fetch_of(store, hub).run(quiet)
    after = {path for path in tmp_path.parent.rglob("*") if store.folder not in path.parents}
    assert after <= {*before, store.folder}


def test_without_hashes_nothing_is_fetched(store: ModelStore, hub: FakeHub) -> None:
    repo = hub.repos[GGUF.repo]
    repo.about["siblings"] = [{"rfilename": "tiny-Q4_0.gguf", "size": 300_000}]
    with pytest.raises(PullFailed, match=r"does not say what tiny-Q4_0\.gguf of maker/Tiny-GGUF must be"):
        fetch_of(store, hub).run(quiet)


def test_offline_nothing_is_asked(store: ModelStore, hub: FakeHub) -> None:
    settings = Settings(Home(store.folder.parent), hub=hub.url, offline=True)
    with pytest.raises(HubFailed, match="set to stay offline"):
        HubFetch(store, Hub(settings), store.catalogue["tiny"], GGUF).run(quiet)
    assert not hub.asked


def test_a_damaged_draft_begins_anew(store: ModelStore, hub: FakeHub) -> None:
    fetch = fetch_of(store, hub)
    fetch.draft.mkdir(parents=True)
    (fetch.draft / "octavo.json").write_text(json.dumps({"id": "tiny", "files": [["../../evil", 3, "0"]]}))
    (fetch.draft / "urls.json").write_text("{}")
    assert fetch.run(quiet).exists()
