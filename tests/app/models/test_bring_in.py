"""Files used where they lie: which of them are a model of the catalogue, and what the others go by."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from app.errors import AppError
from app.models.bring_in import bring_in
from app.models.catalogue import Variant
from app.models.local_models import find_models
from app.models.model_store import ModelStore
from tests.app.fake_hub import hub_catalogue
from tests.app.fakes import make_home
from tests.tiny_models import write_tiny_gguf

OFFERED = (Variant("bf16", repo="maker/Tiny"), Variant("GGUF Q4_0", repo="maker/Tiny-GGUF"))


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(make_home(tmp_path / "home"), hub_catalogue(*OFFERED))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "tiny.gguf").path


def test_the_repository_that_its_place_names_is_that_model(
    store: ModelStore, tiny: Path, tmp_path: Path
) -> None:
    hub, lm_studio = tmp_path / ".cache" / "huggingface" / "hub", tmp_path / ".lmstudio" / "models"
    for folder, name, id in (
        (lm_studio / "other" / "Tiny-GGUF", "tiny-Q4_0.gguf", "other-tiny-gguf-tiny-q4_0"),
        (lm_studio / "maker" / "Tiny-GGUF", "tiny-Q8_0.gguf", "maker-tiny-gguf-tiny-q8_0"),
        (hub / "models--maker--Tiny-GGUF" / "snapshots" / "1", "tiny-Q4_0.gguf", "tiny@gguf-q4_0"),
        (lm_studio / "maker" / "Tiny-GGUF", "tiny-Q4_0.gguf", "maker-tiny-gguf-tiny-q4_0"),  # one is here
    ):
        folder.mkdir(parents=True, exist_ok=True)
        os.link(tiny, folder / name)
        assert bring_in(store, folder / name, find_models({}, tmp_path)) == id
        assert bring_in(store, folder / name, ()) == id
    assert store.name("tiny") == "Tiny, GGUF Q4_0" and store.state(store.catalogue["tiny"]) == "ready"


def test_a_word_of_its_own_that_no_other_model_has(store: ModelStore, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "tiny.gguf"
    os.link(tiny, other)
    assert [bring_in(store, each, ()) for each in (tiny, other)] == ["tiny-2", "tiny-3"]
    assert store.id_of(str(other)) == "tiny-3" and store.find("tiny-2").path == tiny


def test_a_folder_with_nothing_but_a_file_is_that_file(store: ModelStore, tiny: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    os.link(tiny, folder / "Tiny.gguf")
    assert [bring_in(store, each, ()) for each in (folder, folder / "Tiny.gguf", folder)] == ["folder"] * 3
    os.link(tiny, folder / "two.gguf")
    assert bring_in(store, folder / "two.gguf", ()) == "two"


def test_what_can_t_be_used(store: ModelStore, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    for content, said in ((None, "There is no file or folder"), (b"no model", "^bad.gguf is not a GGUF")):
        bad.write_bytes(content) if content else None
        with pytest.raises(AppError, match=said):
            bring_in(store, bad, ())
    with pytest.raises(AppError, match=f"^{re.escape(tmp_path.anchor)} is no model: it has neither"):
        bring_in(store, Path(tmp_path.anchor), ())
    assert store.own.entries() == {}
