"""Which file is a model's, and whether it is the right one: hashed once; both numbers are said when not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.errors import AppError, DamagedModel, ModelMissing
from app.models import model_store
from app.models.catalogue import read_catalogue
from app.models.model_store import ModelFile, ModelStore, model_name
from app.settings import Home
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
    assert (found.name, found.path) == ("tiny", store.place(model))
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
    assert model.variants[0].sha256 in str(raised.value) and model_store.sha256(path) in str(raised.value)
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
    assert (store.find(str(path)).name, model_name(str(path))) == ("my model", "my model")
    with pytest.raises(ModelMissing, match="There is no file"):
        store.find("x" * 5000 + ".gguf")
    folder = path.with_name("Qwen2.5-1.5B")  # not a name with an ending
    folder.mkdir()
    assert store.find(str(folder)) == ModelFile("Qwen2.5-1.5B", folder)
    with pytest.raises(ModelMissing, match="~nobody-has-this-name"):
        store.find("~nobody-has-this-name/x.gguf")


@pytest.mark.parametrize("id", ["nonsense", "..", "", "TINY"])
def test_an_unknown_id(store: ModelStore, id: str) -> None:
    with pytest.raises(AppError, match="There is no model"):
        store.find(id)
