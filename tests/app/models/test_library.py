"""All that a person does with models, put together: what is listed, fetched, brought in, used and deleted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.errors import AppError, ModelMissing
from app.models.catalogue import Variant, read_catalogue
from app.models.first_run import Proposal, largest
from app.models.fits import fit_model
from app.models.library import Library
from app.models.model_store import ModelStore
from app.settings import Home, Settings, load_settings
from engine import DeviceFacts, EngineConfig
from tests.app.fake_hub import FakeHub, hub_catalogue
from tests.app.fakes import FakeModel, make_home, make_runtime

PATIENCE_S = 20


@pytest.fixture
def library(tmp_path: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "person")
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = make_home(tmp_path / "home")
    catalogue = hub_catalogue(
        Variant("bf16", repo="maker/Tiny"), Variant("GGUF Q4_0", repo="maker/Tiny-GGUF")
    )
    settings = Settings(home, hub=hub.url, model="tiny")
    library = Library(settings, ModelStore(home, catalogue), make_runtime(home, FakeModel()))
    yield library
    library.close()


@pytest.fixture
def tiny_gguf(tmp_path: Path, starter_model: Path) -> Path:
    """A real model under another name."""
    path = tmp_path / "My Model.gguf"
    path.symlink_to(starter_model)
    return path


def fetched(library: Library, chosen: str) -> str:
    here = threading.Event()
    key = library.start(chosen, here.set)
    assert here.wait(PATIENCE_S), library.underway()
    return key


def test_a_model_of_the_catalogue_from_the_hub_to_the_bin(library: Library) -> None:
    (row,) = library.rows()
    assert (row.id, row.origin, row.state, row.choice) == ("tiny", "catalogue", "on the hub", "bf16")
    assert [(each.key, each.here, each.badge) for each in row.variants] == [
        ("tiny@bf16", "", "fits"),
        ("tiny@gguf-q4_0", "", "fits"),
    ]
    assert all("about" in each.reason.lower() and each.about for each in row.variants)
    assert fetched(library, "tiny@gguf-q4_0") == "tiny@gguf-q4_0"
    (row,) = library.rows()
    assert row.state == "ready" and [each.here for each in row.variants] == ["", "ready"]
    assert (row.variants[1].bytes, row.variants[1].about) == (300_000, False)
    assert library.store.find("tiny").path == library.store.find("tiny@gguf-q4_0").path
    assert library.remove("tiny@gguf-q4_0") > 300_000
    assert library.rows()[0].state == "on the hub"
    with pytest.raises(ModelMissing, match="Nothing of tiny@gguf-q4_0 is on this machine"):
        library.remove("tiny@gguf-q4_0")


def test_without_a_variant_that_which_suits_is_fetched(library: Library) -> None:
    assert fetched(library, "tiny") == "tiny@bf16"


def test_a_model_that_was_searched_for(library: Library, hub: FakeHub) -> None:
    with pytest.raises(AppError, match="There is no model 'maker--tiny-gguf'"):
        library.start("maker--tiny-gguf")
    rows = {row.id: row for row in library.search("tiny")}
    assert set(rows) == {"maker--tiny", "maker--tiny-gguf"}
    assert rows["maker--tiny-gguf"].origin == "hub" and rows["maker--tiny-gguf"].downloads == 7
    row = library.look("maker--tiny-gguf")
    assert (row.variants[0].bytes, row.variants[0].about) == (300_000, False)
    fetched(library, "maker--tiny-gguf")
    library.close()
    hub.repos.clear()
    again = Library(library.settings, library.store)  # after a restart, nobody remembers the search
    row = next(row for row in again.rows() if row.id == "maker--tiny-gguf")
    assert (row.state, row.name, row.parameters, row.origin) == ("ready", "Tiny-GGUF", 500_000, "hub")
    assert again.store.find("maker--tiny-gguf").path.is_dir()
    assert again.remove("maker--tiny-gguf") > 300_000 and len(again.rows()) == 1


def test_a_repository_by_its_name(library: Library) -> None:
    assert library.fetch("maker/Tiny-GGUF").model.id == "maker--tiny-gguf"
    assert library.fetch("maker/Tiny-GGUF@gguf-q4_0").variant.format == "GGUF Q4_0"
    with pytest.raises(
        AppError, match="There is no maker--tiny-gguf@bf16; there are maker--tiny-gguf@gguf-q4_0"
    ):
        library.fetch("maker/Tiny-GGUF@bf16")


def test_an_unfinished_download_is_found_again_and_asks_nobody(library: Library, hub: FakeHub) -> None:
    cdn = threading.Event()
    repo = hub.repos["maker/Tiny-GGUF"]
    content = repo.files["tiny-Q4_0.gguf"]
    path = "/cdn/" + repo.info()["siblings"][0]["lfs"]["sha256"]

    def half(handler: Any) -> None:
        handler.send(content, most=100_000, pause=lambda handler: cdn.wait(PATIENCE_S))

    hub.faults[path] = half
    key = library.start("tiny@gguf-q4_0")
    end = threading.Event()
    while not any(each.done for each in library.underway()):
        end.wait(0.01)
    library.downloads.pause(key)
    cdn.set()
    library.close()
    hub.faults.clear()
    asked = len(hub.asked)
    again = Library(library.settings, library.store)
    (found,) = again.underway()
    assert (found.key, found.state, found.bytes) == (key, "paused", 300_000) and found.done >= 65_536
    assert len(hub.asked) == asked
    again.downloads.resume(key)
    while again.underway():
        end.wait(0.01)
    assert again.store.find("tiny").path.is_dir() and hub.asked[-1][1]["range"].startswith("bytes=")
    again.close()


def test_the_model_in_memory_is_not_deleted(library: Library) -> None:
    fetched(library, "tiny@bf16")
    library.load("tiny@bf16")
    runtime = library._runtime
    while not (runtime and (runtime.status().model, runtime.status().state) == ("tiny@bf16", "ready")):
        threading.Event().wait(0.01)
    for chosen in ("tiny@bf16", "tiny"):
        with pytest.raises(AppError, match="is in memory"):
            library.remove(chosen)
    fetched(library, "tiny@gguf-q4_0")
    library.remove("tiny@gguf-q4_0")


def test_the_chosen_model_answers_after_the_next_start_until_it_is_deleted(library: Library) -> None:
    home = library.settings.home
    (home / "settings.toml").write_text("# mine\nport = 8003\n")
    fetched(library, "tiny@bf16")
    library.load("tiny@bf16")
    assert load_settings(home).model == "tiny@bf16"
    fetched(library, "tiny@gguf-q4_0")
    library.load("tiny@gguf-q4_0")
    runtime = library._runtime
    assert runtime
    while runtime.status().model != "tiny@gguf-q4_0":
        threading.Event().wait(0.01)
    library.remove("tiny@bf16")
    assert load_settings(home).model == "tiny@gguf-q4_0"
    runtime.unload()
    while runtime.status().state == "ready":
        threading.Event().wait(0.01)
    library.remove("tiny")
    assert load_settings(home).model == "smollm2-135m"
    assert (home / "settings.toml").read_text() == "# mine\nport = 8003\n"


def test_a_file_that_is_brought_in_stays_where_it_is(library: Library, tiny_gguf: Path) -> None:
    id = library.bring_in(str(tiny_gguf))
    assert library.bring_in(str(tiny_gguf)) == id
    row = library.rows()[0]
    assert (row.id, row.origin, row.state, row.variants[0].source) == (id, "yours", "ready", str(tiny_gguf))
    assert row.parameters > 0 and library.store.find(id).path == tiny_gguf
    assert row.context == 8192 and row.variants[0].badge == "fits"
    assert "tokens/s, room for" in row.variants[0].reason
    assert library.remove(id) == 0 and tiny_gguf.exists() and library.rows()[0].origin == "catalogue"


@pytest.mark.parametrize("typed", ['"{}"', "'{}'", ' "{}"\n', "~/My Model.gguf", '"~/My Model.gguf"'])
def test_a_path_may_be_typed_as_a_person_has_it(
    library: Library, tiny_gguf: Path, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tiny_gguf.parent))
    library.bring_in(typed.format(tiny_gguf))
    assert library.rows()[0].variants[0].source == str(tiny_gguf)


def test_a_file_of_the_catalogue_s_is_that_model(
    library: Library, starter_model: Path, tmp_path: Path
) -> None:
    store = ModelStore(library.settings.home, read_catalogue())
    library = Library(Settings(library.settings.home, offline=True), store)
    copy = tmp_path / "some name.gguf"
    os.link(starter_model.resolve(), copy)
    id = library.bring_in(str(copy))
    assert id == store.resolve("smollm2-135m") == "smollm2-135m@gguf-q4_1"
    row = next(row for row in library.rows() if row.id == "smollm2-135m")
    (variant,) = row.variants
    assert (row.state, row.origin, variant.here, variant.yours) == ("ready", "catalogue", "ready", True)
    assert variant.source == str(copy) and [each.id for each in library.rows()].count(row.id) == 1
    assert library.first().starter_here and library.found() == []
    with pytest.raises(AppError, match=r"smollm2-135m@gguf-q4_1 is here already: .*some name\.gguf"):
        library.start("smollm2-135m")
    assert library.bring_in(str(copy)) == id and library.remove("smollm2-135m") == 0
    assert copy.exists() and store.state(store.catalogue["smollm2-135m"]) == "missing"


def test_a_folder_and_a_file_may_be_called_as_their_owner_likes(
    library: Library, tmp_path: Path, starter_model: Path
) -> None:
    for name in ("模型", "Ünï 中文"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "通义.gguf").hardlink_to(starter_model.resolve())
    assert library.bring_in(str(tmp_path / "模型")) == "model"
    assert library.bring_in(str(tmp_path / "Ünï 中文")) == "uni"
    assert [row.name for row in library.rows()[:2]] == ["模型", "Ünï 中文"]


def test_what_can_t_be_brought_in(library: Library, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"no model")
    for path, said in (
        (bad, "bad.gguf is not a GGUF file"),
        (tmp_path / "none", "no file or folder"),
        ("~nobody-of-this-name/m.gguf", "no file or folder"),
        ('"', "no file or folder"),
        (tmp_path, "can.t be used: bad.gguf is not a GGUF file"),
    ):
        with pytest.raises(AppError, match=said):
            library.bring_in(str(path))
    assert library.store.own.entries() == {}


def test_models_of_other_programs_are_listed_until_they_are_brought_in(
    library: Library, tmp_path: Path, tiny_gguf: Path
) -> None:
    folder = tmp_path / "person" / ".lmstudio" / "models" / "maker" / "tiny"
    folder.mkdir(parents=True)
    file = tiny_gguf.rename(folder / tiny_gguf.name)
    (found,) = library.found()
    assert (found.source, found.path) == ("LM Studio", file)
    library.bring_in(str(file))
    assert library.found() == [] and library.rows()[0].name == found.name


def test_a_file_that_was_put_into_the_models_folder_is_found(library: Library, tiny_gguf: Path) -> None:
    folder = library.store.folder
    folder.mkdir(exist_ok=True)
    fetched(library, "tiny@gguf-q4_0")
    file = tiny_gguf.rename(folder / tiny_gguf.name)
    (found,) = library.found()
    assert (found.source, found.path) == ("Octavo", file)
    library.bring_in(str(file))
    assert library.found() == []


def test_the_catalogue_s_own_file_is_not_found_again(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    store = ModelStore(home, read_catalogue())
    place = store.place(store.catalogue["smollm2-135m"])
    place.parent.mkdir(parents=True)
    place.write_bytes(b"GGUF")
    assert place not in [each.path for each in Library(Settings(home, offline=True), store).found()]


def test_a_file_of_one_s_own_that_is_damaged_or_gone_has_no_badge(library: Library, tiny_gguf: Path) -> None:
    library.bring_in(str(tiny_gguf))
    tiny_gguf.unlink()
    for content, said in (("", "There is no file or folder"), ("no model", "")):
        tiny_gguf.write_text(content) if content else None
        row = library.rows()[0]
        assert (row.context, row.variants[0].badge) == (0, "") and said in row.variants[0].reason


def test_how_a_model_is_used_is_kept(library: Library) -> None:
    library.use("tiny", system_prompt="Be brief.", context=1024, sampling={"temperature": 0.1})
    entry = library.store.own.entries()["tiny"]
    assert (entry.system_prompt, entry.context, entry.sampling) == ("Be brief.", 1024, {"temperature": 0.1})
    with pytest.raises(AppError, match="There is no model"):
        library.use("nonsense", context=5)


def test_with_a_model_of_one_s_own_it_is_not_the_first_day(tmp_path: Path, tiny_gguf: Path) -> None:
    home = make_home(tmp_path)
    library = Library(Settings(home, offline=True), ModelStore(home, read_catalogue()))
    assert not library.first().begun
    library.bring_in(str(tiny_gguf))
    assert library.first().begun


def test_the_first_run(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    store = ModelStore(home, read_catalogue())
    first = Library(Settings(home, offline=True), store).first()
    assert first.proposal.id == first.starter.id == "smollm2-135m"
    assert not first.begun and not first.starter_here
    assert Library(Settings(Home(tmp_path), model="qwen3-0.6b"), store).first().begun


def test_the_recommendation_is_looked_for_once_a_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, looked = make_home(tmp_path), list[int]()
    library = Library(Settings(home), ModelStore(home, read_catalogue()))
    monkeypatch.setattr("app.models.disk.free_bytes", lambda folder: 10**12)
    device = DeviceFacts("A machine", "cpu", 2**34, 2**34, 8, True, "")
    monkeypatch.setattr(library.machine, "device", lambda: device)
    monkeypatch.setattr(library.machine, "speed", lambda: 35e9)

    def counted(*facts: Any) -> Proposal | None:
        looked.append(1)
        return largest(*facts)

    monkeypatch.setattr("app.models.library.largest", counted)
    monkeypatch.setattr("app.models.first_run.largest", counted)
    rows, best = library.listing()
    assert len(looked) == 1 and best.id in {row.id for row in rows}


def test_what_is_recommended_is_what_is_listed_and_taken_of_that_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recommendation may want more speed, or a smaller download, than the best edition of a model has."""
    home, own = make_home(tmp_path), 0
    library = Library(Settings(home), ModelStore(home, read_catalogue()))
    monkeypatch.setattr("app.models.disk.free_bytes", lambda folder: 10**12)
    for gib in (6, 12, 24, 64):
        for speed in (20e9, 35e9, 100e9):
            device = DeviceFacts("A machine", "cpu", gib * 2**30, gib * 2**30, 8, True, "")
            monkeypatch.setattr(library.machine, "device", lambda device=device: device)
            monkeypatch.setattr(library.machine, "speed", lambda speed=speed: speed)
            rows, best = library.listing()
            assert (library.rows(), library.proposal()) == (rows, best)
            (row,) = (row for row in rows if row.id == best.id)
            assert (row.choice, library._suits(library.store.catalogue[best.id]).format) == (best.format,) * 2
            model = library.store.catalogue[best.id]
            own += fit_model(model, device, speed, EngineConfig()).choice != best.format
    assert own  # of some it would not be the edition that suits best
