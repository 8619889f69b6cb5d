"""Which file is a model's, and whether it is the right one: hashed once; both numbers are said when not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import AppError, DamagedModel, ModelMissing
from app.models import checksums, model_store
from app.models.catalogue import Variant, read_catalogue
from app.models.installed import make_record, write_record
from app.models.model_store import ModelFile, ModelStore
from app.settings import Home
from tests.app.fake_hub import hub_catalogue
from tests.app.wheels import tiny_model


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    tiny = tiny_model(tmp_path / "wheels", monkeypatch, (b"GGUF", b"model"))
    store = ModelStore(Home(tmp_path), tiny.catalogue)
    place = store.place(tiny.catalogue["tiny"])
    place.parent.mkdir(parents=True)
    place.write_bytes(tiny.content)
    return store


def test_it_is_hashed_once(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    model = store.catalogue["tiny"]
    assert store.state(model) == "unverified"
    stages = []
    found = store.find("tiny", lambda stage, part: stages.append((stage, part)))
    assert found == ModelFile("tiny@gguf-q4_0", "Tiny", store.place(model))
    assert stages == [("checking", 1.0)] and store.state(model) == "ready"
    monkeypatch.setattr(model_store, "sha256", None)
    assert store.find("tiny") == found


def test_a_file_that_was_changed_is_hashed_again(store: ModelStore) -> None:
    path = store.find("tiny").path
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(1, 1))
    model = store.catalogue["tiny"]
    with pytest.raises(DamagedModel) as raised:
        store.find("tiny")
    assert model.variants[0].sha256 in str(raised.value) and checksums.sha256(path) in str(raised.value)
    assert "octavo models pull tiny" in str(raised.value)
    assert store.state(model) == "damaged"
    path.write_bytes(b"GGUFmodel")
    assert store.find("tiny").path == path


def test_one_that_is_cut_short(store: ModelStore) -> None:
    path = store.place(store.catalogue["tiny"])
    path.write_bytes(b"GGUF")
    with pytest.raises(DamagedModel, match="has 4 bytes instead of 9"):
        store.find("tiny")
    assert store.state(store.catalogue["tiny"]) == "damaged"


def test_one_that_is_not_there(tmp_path: Path) -> None:
    store = ModelStore(Home(tmp_path), read_catalogue())
    assert store.state(store.catalogue["smollm2-135m"]) == "missing"
    with pytest.raises(ModelMissing, match=r"`octavo models pull smollm2-135m` fetches it \(98\.4 MB\)"):
        store.find("smollm2-135m")


def test_any_file_by_its_path(tmp_path: Path, store: ModelStore) -> None:
    path = tmp_path / "my model.gguf"
    with pytest.raises(ModelMissing, match=r"no file or folder .*my model\.gguf"):
        store.find(str(path))
    path.write_bytes(b"anything")
    assert store.find(str(path)) == ModelFile("my model", "my model", path)
    with pytest.raises(ModelMissing, match="There is no file"):
        store.find("x" * 5000 + ".gguf")
    folder = path.with_name("Qwen2.5-1.5B")  # not a name with an ending
    folder.mkdir()
    assert store.find(str(folder)) == ModelFile("Qwen2.5-1.5B", "Qwen2.5-1.5B", folder)
    with pytest.raises(ModelMissing, match="~nobody-has-this-name"):
        store.find("~nobody-has-this-name/x.gguf")


@pytest.mark.parametrize("id", ["nonsense", "..", "", "TINY"])
def test_an_unknown_id(store: ModelStore, id: str) -> None:
    with pytest.raises(AppError, match="There is no model"):
        store.find(id)


def came(store: ModelStore, format: str, id: str = "", name: str = "Own") -> None:
    """Have a variant of the catalogue's model, or of one that is in none, come from the hub."""
    model = store.catalogue.models[0]
    model = replace(model, id=id, name=name) if id else model
    folder = store.folder / model.id / format.lower().replace(" ", "-")
    folder.mkdir(parents=True)
    write_record(folder, make_record(model, format, "maker/Tiny", "1", ()))


def test_a_model_has_one_id_however_it_is_written(store: ModelStore, tmp_path: Path) -> None:
    mine = tmp_path / "Mine.gguf"
    mine.write_bytes(b"GGUF")
    assert {store.resolve(each) for each in ("tiny", "tiny@gguf-q4_0")} == {"tiny@gguf-q4_0"}
    assert store.resolve(str(mine)) == str(mine) and store.id_of(str(mine)) == "Mine"
    store.own.keep("word", path=str(mine), name="My model")
    assert store.resolve(str(mine)) == store.id_of("word") == store.find(str(mine)).id == "word"
    store.own.keep("old.gguf", path=str(mine.with_name("Other.gguf")))  # an id that looks like a file
    mine.with_name("Other.gguf").write_bytes(b"GGUF")
    assert store.id_of("old.gguf") == store.find("old.gguf").id == store.name("old.gguf") == "old.gguf"
    for chosen in ("nobody", "llama3", "openai/gpt-4o"):  # what answered in another program
        assert store.name(chosen) == chosen
    with pytest.raises(AppError, match="There is no tiny@fp8; there are tiny@gguf-q4_0"):
        store.check("tiny@fp8")


def test_people_see_names(store: ModelStore, tmp_path: Path) -> None:
    names = {id: store.name(id) for id in ("tiny", "tiny@gguf-q4_0", "word", "quiet")}
    assert names == {"tiny": "Tiny", "tiny@gguf-q4_0": "Tiny", "word": "word", "quiet": "quiet"}
    (tmp_path / "word.gguf").write_bytes(b"GGUF")
    store.own.keep("word", path=str(tmp_path / "word.gguf"), name="My model")
    came(store, "bf16", "maker--own")
    assert store.name("word") == "My model" and store.name("maker--own@bf16") == "Own, bf16"


def test_of_several_variants_each_has_its_id_and_its_name(tmp_path: Path) -> None:
    offered = (Variant("bf16", repo="maker/Tiny"), Variant("GGUF Q4_0", repo="maker/Tiny-GGUF"))
    store = ModelStore(Home(tmp_path), hub_catalogue(*offered))
    assert (store.resolve("tiny"), store.name("tiny")) == ("tiny", "Tiny")  # which one nobody knows yet
    came(store, "GGUF Q4_0")
    assert store.resolve("tiny") == store.find("tiny").id == "tiny@gguf-q4_0"
    came(store, "bf16")
    assert store.resolve("tiny") == "tiny@bf16" and store.here("tiny") == ["tiny@bf16", "tiny@gguf-q4_0"]
    assert store.name("tiny@gguf-q4_0") == "Tiny, GGUF Q4_0"


def test_a_file_used_where_it_lies_stands_for_the_catalogue_s_model(
    store: ModelStore, tmp_path: Path
) -> None:
    model, mine = store.catalogue["tiny"], tmp_path / "mine.gguf"
    store.remove("tiny")
    mine.write_bytes(b"GGUFmodel")
    store.own.keep("tiny@gguf-q4_0", path=str(mine))
    assert store.state(model) == "ready" and store.here("tiny") == ["tiny@gguf-q4_0"]
    for chosen in ("tiny", "tiny@gguf-q4_0", str(mine)):
        assert store.find(chosen) == ModelFile("tiny@gguf-q4_0", "Tiny", mine)
    mine.unlink()
    assert store.state(model) == "missing" and store.here("tiny") == []
    with pytest.raises(ModelMissing, match="octavo models pull tiny"):
        store.find("tiny")
