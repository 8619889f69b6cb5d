"""What chats leave behind on the disk: who may, and that it goes with the chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.chats.chat import ChatService
from app.chats.shelf import Shelf
from app.chats.store import ChatStore
from app.errors import AppError
from app.memory.runtime import Runtime
from app.models.catalogue import read_catalogue
from app.models.model_store import ModelStore
from app.settings import Home, Settings
from engine import BlockStore, EngineStopped
from engine.scheduling.block_pool import Chain, Identity
from engine.tiers.segments import Block, Seal
from tests.app.fakes import FakeModel, echo, make_home, make_runtime


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(answer=echo)


def open_shelf(home: Home, runtime: Runtime) -> Shelf:
    store = ChatStore(home / "chats.db")
    return Shelf(ChatService(store, runtime, Settings(home)), store)


def left(home: Home, chat: str, token: int) -> BlockStore:
    """A block on the disk that this chat alone uses."""
    store, root = BlockStore(home.blocks), Chain.root(b"s", Identity("person", "", "", "", 16))
    chain = root.extend((token,) * 16)
    store.use(chat, [chain.chain_hash])
    store.add(Seal(b"s", "test"), [Block(0, chain, 100, lambda: bytes(100))])
    return store


def test_only_saved_chats_may_be_written(home: Home, model: FakeModel) -> None:
    shelf = open_shelf(home, make_runtime(home, model))
    for private in (False, True):
        chat = shelf._chats.send(shelf.new(private=True) if private else "", "Hello")
        request = model.next_stream().request
        assert request.group == chat and request.keep is not private
    shelf._chats.close()


def test_a_deleted_chat_is_forgotten_when_it_can_not_come_back(home: Home, model: FakeModel) -> None:
    shelf = open_shelf(home, make_runtime(home, model))
    chat = shelf._chats.send("", "Hello")
    shelf.discard(chat)
    assert model.forgotten == []
    shelf.close()  # empties the bin
    assert model.forgotten == [chat]
    shelf._chats.close()


def without_model(home: Home) -> Runtime:
    return Runtime(Settings(home, cache_quota=1), ModelStore(home, read_catalogue()))


def test_also_while_no_model_is_in_memory(home: Home) -> None:
    runtime = without_model(home)
    runtime.forget("never seen")
    left(home, "stays", 1)
    store = left(home, "goes", 2)
    assert runtime.disk().num_blocks == 2 and runtime.disk().most == 10**9
    runtime.forget("goes")
    assert store.totals()[1] == 1
    runtime.clear_disk()
    assert store.totals() == (0, 0)


def test_a_model_that_has_stopped_keeps_nothing_from_being_forgotten(home: Home, model: FakeModel) -> None:
    def stopped(chat: str) -> None:
        raise EngineStopped("The engine is closed.")

    model.forget = stopped  # type: ignore[method-assign]
    runtime = make_runtime(home, model)
    store = left(home, "goes", 1)
    runtime.forget("goes")
    assert store.totals() == (0, 0)


def test_the_start_removes_what_a_kill_left_of_deleted_chats(home: Home, model: FakeModel) -> None:
    shelf = open_shelf(home, make_runtime(home, model))
    chat = shelf._chats.send("", "Hello")
    left(home, chat, 1)
    store = left(home, "deleted, then killed", 2)
    shelf._sweep()
    assert store.totals()[1] == 1
    shelf._chats.close()


def test_a_disk_that_can_not_be_cleared_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: BlockStore) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(BlockStore, "clear", refuse)
    with pytest.raises(AppError, match="can't be used: Permission denied"):
        without_model(home).clear_disk()
