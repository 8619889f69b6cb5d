"""`octavo models show` in words: how many chats, what is too large, said once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.commands import model_list
from app.models.catalogue import Model, read_catalogue
from app.models.model_store import ModelStore
from app.settings import Home, load_settings
from engine import DeviceFacts

GIB = 2**30
Show = Callable[[Model, int], str]
DEVICE = DeviceFacts("a processor", "cpu", 24 * GIB, 20 * GIB, 2, True, "Models run on the processor.")


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    monkeypatch.setattr(model_list, "read_speed", lambda cores: 100e9)

    def shown(model: Model, free: int) -> str:
        monkeypatch.setattr(model_list, "detect", lambda: replace(DEVICE, memory_available=free * GIB))
        store = ModelStore(Home(tmp_path), read_catalogue())
        model_list.show_model(store, model, load_settings(Home(tmp_path)), as_json=False)
        return str(capsys.readouterr().out)

    return shown


def test_where_none_fits_it_is_said_once(show: Show) -> None:
    shown = show(read_catalogue()["llama-3.3-70b"], 20)
    assert shown.count("for its weights") == 1 and "lose other programs" not in shown
    assert shown.count("does not fit") == 6


def test_what_is_too_large_is_one_sentence(show: Show) -> None:
    shown = show(read_catalogue()["qwen3-8b"], 11)
    assert "Too large for the memory that is free now: GGUF Q8_0, FP8.\n" in shown
    assert "for its weights" not in shown


@pytest.mark.parametrize(
    ("chats", "said"), [(32.0, "32"), (1234.9, "1,234"), (4.58, "4.5"), (4.02, "4"), (0.97, "0.9")]
)
def test_chats_are_rounded_down(chats: float, said: str) -> None:
    model = read_catalogue()["smollm2-135m"]
    fit = model_list.Fit("GGUF Q4_1", 1, False, 1, 11, 50.0, True, 8192, chats, 8192, "")
    assert model_list._room(model, fit) == ("8,192", said)
