"""Chats in an empty home, answered by a model whose answers the test writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats.chat import ChatService
from app.chats.store import ChatStore
from app.settings import Home, Settings
from engine import SamplingParams
from tests.app.fakes import FakeModel, make_home, make_runtime

SAMPLING = SamplingParams(temperature=0.25, seed=7)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def chats(home: Home, model: FakeModel) -> Iterator[ChatService]:
    service = open_chats(home, model)
    yield service
    service.close()


def open_chats(home: Home, model: FakeModel, gate: threading.Event | None = None) -> ChatService:
    settings = Settings(home, model="fake", system_prompt="Be brief.", sampling=SAMPLING)
    return ChatService(ChatStore(home / "chats.db"), make_runtime(home, model, gate), settings)
