"""What tests of several parts of the app begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.app.fake_hub import FakeHub, folder_repo, gguf_repo, serving_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub of our own with two repositories: one file in GGUF, and a folder as transformers writes it."""
    with serving_hub(monkeypatch) as hub:
        hub.add(gguf_repo())
        hub.add(folder_repo())
        yield hub
