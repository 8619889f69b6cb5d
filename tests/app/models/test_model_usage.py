"""Who decides how a model is used: settings.toml, then the person's models.toml, then the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.chats.chat import ChatService
from app.chats.store import ChatStore
from app.models.model_usage import settings_for
from app.models.own_models import OwnModels
from app.settings import Home, Settings, load_settings
from engine import SamplingParams
from tests.app.fakes import FakeModel, make_home, make_runtime


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_each_model_has_its_own(home: Home) -> None:
    given = load_settings(home)
    assert settings_for("smollm2-135m", given) is given
    coder = settings_for("qwen2.5-coder-1.5b", given)
    assert (given.sampling.frequency_penalty, coder.sampling.frequency_penalty) == (0.3, 0.0)
    assert (coder.sampling.top_k, coder.model) == (20, given.model)
    another = settings_for("/data/some.gguf", given)  # of which nothing is known
    assert (another.sampling, another.model) == (SamplingParams(), given.model)


def test_what_was_just_written_counts(home: Home) -> None:
    given = load_settings(home)
    own = OwnModels(home.path)
    own.keep("smollm2-135m", system_prompt="Be brief.", context=1024, sampling={"temperature": 0.1})
    for chosen in ("smollm2-135m", "smollm2-135m@gguf-q4_1"):
        now = settings_for(chosen, given)
        assert (now.system_prompt, now.engine.context_length) == ("Be brief.", 1024)
        assert (now.sampling.temperature, now.sampling.frequency_penalty) == (0.1, 0.3)
    assert settings_for("qwen2.5-coder-1.5b", load_settings(home)).system_prompt == ""
    assert load_settings(home).system_prompt == "Be brief."
    own.forget("smollm2-135m")
    assert load_settings(home) == given


def test_settings_toml_comes_first(home: Home) -> None:
    (home / "settings.toml").write_text(
        'system_prompt = "Mine."\ncontext_length = 2048\n[sampling]\ntemperature = 0.5\n'
    )
    own = OwnModels(home.path)
    own.keep("smollm2-135m", system_prompt="Theirs.", context=1024, sampling={"temperature": 0.1, "top_k": 5})
    now = settings_for("smollm2-135m", load_settings(home))
    assert (now.system_prompt, now.engine.context_length) == ("Mine.", 2048)
    assert (now.sampling.temperature, now.sampling.top_k) == (0.5, 5)


def test_other_settings_stay(home: Home) -> None:
    given = Settings(home, port=5000)
    (home / "settings.toml").write_text("[[[")
    assert settings_for("qwen3-0.6b", given) is given
    (home / "settings.toml").write_text("port = 6000")
    assert settings_for("qwen3-0.6b", given).port == 5000


def test_it_counts_from_the_next_message_on(home: Home) -> None:
    home, model = make_home(home.path), FakeModel(answer=lambda request: "Yes.")
    chats = ChatService(ChatStore(home / "chats.db"), make_runtime(home, model), load_settings(home))
    try:
        before = chats.send("", "Hello")
        OwnModels(home.path).keep("fake", system_prompt="Be brief.", sampling={"temperature": 0.1})
        chats.send(chats.new_chat(), "Hello")
        first, second = (model.next_stream().request for _ in range(2))
        assert (first.sampling.temperature, second.sampling.temperature) == (0.7, 0.1)
        assert [message.role for message in first.messages] == ["user"] and before
        assert second.messages[0].content == "Be brief."
    finally:
        chats.close()
