"""The person's models.toml: read anew when it changes, written with its comments kept, left out when bad."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import AppError, BadCatalogue, BadSettings
from app.models.own_models import OwnModel, OwnModels
from app.settings import Home, load_settings
from engine import SamplingParams

WRITTEN = """\
# mine
[[models]]
id = "qwen3-0.6b"  # the small one
sampling = { temperature = 0.2, stop = ["END"] }  # calm

[[models]]
id = "mine"
path = "/data/my model.gguf"
context = 4096
system_prompt = "Be brief."
"""


@pytest.fixture
def own(tmp_path: Path) -> OwnModels:
    (tmp_path / "models.toml").write_text(WRITTEN, "utf-8")
    return OwnModels(tmp_path)


def test_what_it_says(own: OwnModels) -> None:
    assert own.entries()["mine"] == OwnModel(
        "mine", path="/data/my model.gguf", context=4096, system_prompt="Be brief."
    )
    base = SamplingParams(top_k=7)
    assert own.sampling("qwen3-0.6b", base) == SamplingParams(temperature=0.2, top_k=7, stop=("END",))
    assert own.sampling("mine", base) == own.sampling("none", base) == base
    assert own.problem == ""


def test_comments_and_order_stay(own: OwnModels) -> None:
    own.keep("qwen3-0.6b", context=8192, system_prompt="说中文。")
    own.keep("other", sampling={"top_k": 3})
    text = own.path.read_text("utf-8")
    for line in WRITTEN.splitlines():
        assert line in text
    assert own.entries()["qwen3-0.6b"].context == 8192 and list(own.entries()) == [
        "qwen3-0.6b",
        "mine",
        "other",
    ]
    own.keep("qwen3-0.6b", context=None, system_prompt=None)
    own.forget("other")
    assert own.path.read_text("utf-8").strip() == WRITTEN.strip()
    assert oct(own.path.stat().st_mode)[-3:] == "600"


def test_without_a_file_one_is_made(tmp_path: Path) -> None:
    own = OwnModels(tmp_path)
    assert own.entries() == {}
    own.keep("a", path="/x.gguf")
    assert OwnModels(tmp_path).entries()["a"].path == "/x.gguf"
    own.forget("a")
    assert OwnModels(tmp_path).entries() == {}


def test_a_list_in_brackets(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('models = [{ id = "a", context = 512 }]\n')
    own = OwnModels(tmp_path)
    own.keep("b", sampling={"top_k": 3})
    own.keep("a", name="A")
    assert [entry.name for entry in own.entries().values()] == ["A", ""]
    assert OwnModels(tmp_path).entries()["b"].sampling == {"top_k": 3}


def test_it_is_read_again_when_it_was_changed(own: OwnModels) -> None:
    own.entries()
    own.path.write_text('[[models]]\nid = "new"\n')
    assert list(own.entries()) == ["new"]
    own.path.unlink()
    assert own.entries() == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models = 3", "must be a list"),
        ("[[models]]\nid = 3", "needs an id"),
        ('[[models]]\nid = "../x"', "needs an id"),
        ('[[models]]\nid = "a"\nnonsense = 1', "nonsense is not a key"),
        ('[[models]]\nid = "a"\ncontext = true', "context can't be True"),
        ('[[models]]\nid = "a"\ncontext = 99999999', "'a': context_length is 99,999,999; it must lie"),
        ('[[models]]\nid = "a"\nsampling = { temperature = 99 }', "temperature is 99"),
        ('[[models]]\nid = "a"\nsampling = { heat = 1 }', r"sampling\.heat = 1 is not a setting"),
        ('[[models]]\nid = "a"\nsampling = { temperature = "x" }', "temperature is 'x'; it must be a number"),
        (
            '[[models]]\nid = "a"\nsampling = { temperature = [1] }',
            r"temperature is \[1\]; it must be a number",
        ),
        ('[[models]]\nid = "a"\nsampling = { stop = [1] }', r"stop is \[1\]; it must be a list of texts"),
        ('[[models]]\nid = "a"\nsampling = { stop = "x" }', "stop is 'x'; it must be a list of texts"),
        ('[[models]]\nid = "a"\n[[models]]\nid = "a"', "stands there twice"),
        ("settings = 1", "settings is not a key"),
        ("[[[", "left out"),
        ("\udcff", "left out"),
    ],
)
def test_a_bad_file_is_a_sentence_and_counts_for_nothing(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "models.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    own = OwnModels(tmp_path)
    assert own.entries() == {}
    with pytest.raises(BadCatalogue, match=said):
        raise BadCatalogue(own.problem)
    with pytest.raises(BadCatalogue, match="Correct or delete it first"):
        own.keep("a", context=5)
    assert (tmp_path / "models.toml").read_bytes() == text.encode("utf-8", "surrogateescape")
    assert load_settings(Home(tmp_path)).sampling  # the program goes on


def test_a_context_that_is_too_small_counts_as_the_least(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('[[models]]\nid = "a"\ncontext = 256\n[[models]]\nid = "b"\n')
    own = OwnModels(tmp_path)
    assert (own.entries()["a"].context, list(own.entries()), own.problem) == (512, ["a", "b"], "")
    own.keep("a", system_prompt="Be brief.")
    with pytest.raises(BadSettings, match=r"^context_length is 256; it must lie between 512 and"):
        own.keep("a", context=256)
    assert "context = 256" in own.path.read_text("utf-8")


def test_what_can_t_be_kept_is_not_written(own: OwnModels) -> None:
    too_much = ({"sampling": {"temperature": 99}}, {"context": 10**9}, {"system_prompt": "x" * 200_000})
    for changes in (*too_much, {"context": 511}):
        with pytest.raises(AppError):
            own.keep("mine", **changes)
    assert own.path.read_text("utf-8") == WRITTEN


def test_the_settings_sample_as_it_says(tmp_path: Path) -> None:
    OwnModels(tmp_path).keep("smollm2-135m", sampling={"temperature": 0.1})
    settings = load_settings(Home(tmp_path))
    assert (settings.sampling.temperature, settings.sampling.frequency_penalty) == (0.1, 0.3)
