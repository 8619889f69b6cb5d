"""What goes down and what comes back, on a fake device and real tiers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.engine import Engine
from engine.scheduling.pace import Pace
from engine.scheduling.sequence import Sequence
from engine.tiers import tiers as module
from engine.tiers.disk import Disk
from engine.tiers.host import Host
from engine.tiers.segments import Block, Copied, Seal
from engine.tiers.store import BlockStore
from engine.tiers.tiers import Tiers
from tests.engine.scheduling.machine import BLOCK, Machine

KEPT = {"group": "chat", "keep": True}


class Bytes:
    """The fake device's numbers as the bytes that files hold."""

    def __init__(self, machine: Machine) -> None:
        self.device = machine.device

    def read_block(self, kind: int, block: int) -> Copied:
        numbers = self.device.read_block(kind, block)()
        contents = b"".join(n.to_bytes(8, "little", signed=True) for n in numbers)
        return lambda: contents

    def write_block(self, kind: int, block: int, contents: bytes) -> None:
        pieces = [bytes(contents[at : at + 8]) for at in range(0, len(contents), 8)]
        self.device.write_block(kind, block, [int.from_bytes(p, "little", signed=True) for p in pieces])


def below(machine: Machine, folder: Path | None = None, host_bytes: int = 0) -> Tiers:
    disk = Disk(BlockStore(folder), Seal(b"s", "fake"), 2**40) if folder else None
    host = Host(host_bytes) if host_bytes else None
    return Tiers(machine.scheduler, Bytes(machine), host, disk, lambda: machine.now)


def finish(machine: Machine, tiers: Tiers) -> None:
    """Until nothing is left; waits for what is on its way."""
    while machine.scheduler.has_work():
        machine.step()
        tiers.rest()


def saved(tiers: Tiers) -> None:
    assert tiers.disk
    while (nap := tiers.tidy()) is not None:
        threading.Event().wait(nap)
    tiers.disk._writer.submit(lambda: None).result()


@pytest.fixture(params=[(0,), (0, 6)], ids=["full", "and a window"])
def windows(request: pytest.FixtureRequest) -> tuple[int, ...]:
    return request.param


@pytest.fixture
def yesterday(tmp_path: Path, windows: tuple[int, ...]) -> Iterator[Sequence]:
    """A chat of which the disk has all."""
    machine = Machine(windows=windows)
    tiers = below(machine, tmp_path)
    seq = machine.add(50, 4, **KEPT)
    finish(machine, tiers)
    tiers.close()
    yield seq


def test_yesterday_s_chat_is_read(yesterday: Sequence, tmp_path: Path, windows: tuple[int, ...]) -> None:
    machine = Machine(windows=windows)
    tiers = below(machine, tmp_path)
    again = machine.add(yesterday.tokens, 4, **KEPT)
    finish(machine, tiers)
    assert again.num_cached == 52 and tiers.picture()[0].hits
    assert tiers.tidy() is None  # what was read is not written again
    tiers.close()


def test_others_go_first_meanwhile(yesterday: Sequence, tmp_path: Path, windows: tuple[int, ...]) -> None:
    machine = Machine(windows=windows)
    tiers = below(machine, tmp_path)
    assert tiers.disk
    gate: Future[None] = Future()
    tiers.disk._reader.submit(gate.result)
    again, other = machine.add(yesterday.tokens, 4, **KEPT), machine.add(10, 2, owner="another")
    assert {item.sequence for item in machine.step().items} == {other}
    gate.set_result(None)
    finish(machine, tiers)
    assert again.num_cached == 52
    tiers.close()


def test_a_disk_that_is_late_is_not_waited_for(
    yesterday: Sequence, tmp_path: Path, windows: tuple[int, ...]
) -> None:
    machine = Machine(windows=windows)
    tiers = below(machine, tmp_path)
    assert tiers.disk
    gate: Future[None] = Future()
    tiers.disk._reader.submit(gate.result)
    again = machine.add(yesterday.tokens, 4, **KEPT)
    assert not machine.step()
    before, machine.now = tiers.disk.seconds(1), machine.now + module.LEAST_S + 60
    assert machine.step() and again.num_cached == 0
    assert tiers.disk.seconds(1) == pytest.approx(4 * before)
    gate.set_result(None)
    finish(machine, tiers)
    tiers.close()


def test_what_is_quicker_computed_is_computed(
    yesterday: Sequence, tmp_path: Path, windows: tuple[int, ...]
) -> None:
    machine = Machine(windows=windows, pace=Pace(1000.0, token_s=1e-12))
    tiers = below(machine, tmp_path)
    assert tiers.disk
    tiers.disk._reader.submit(lambda: None).result()
    before, engine = tiers.disk.bytes_per_s, Engine(machine.scheduler, None)
    engine.tiers = tiers
    again = machine.make(yesterday.tokens, 4, **KEPT)
    assert engine.foresee(again)[0] == 0
    machine.scheduler.add(again, machine.now)
    finish(machine, tiers)
    assert again.num_cached == 0 and tiers.disk.bytes_per_s > before
    tiers.close()


def test_an_estimate_counts_what_can_be_read(
    yesterday: Sequence, tmp_path: Path, windows: tuple[int, ...]
) -> None:
    machine = Machine(windows=windows)
    engine = Engine(machine.scheduler, None)
    engine.tiers = tiers = below(machine, tmp_path)
    cached, seconds = engine.foresee(machine.make(yesterday.tokens, 4, **KEPT))
    assert cached == 52 and 0 < seconds < machine.scheduler.pace.prompts_s([(0, 54)])
    tiers.close()


@pytest.mark.parametrize(
    "asked", [{"group": "chat"}, {"keep": True}, {"owner": "private-1", "group": "private-1"}]
)
def test_what_may_not_be_kept_is_never_written(tmp_path: Path, asked: dict) -> None:
    machine = Machine(num_blocks=16)
    tiers = below(machine, tmp_path / "blocks", host_bytes=10**6)
    machine.add(50, 4, **asked)
    finish(machine, tiers)
    machine.add(list(range(100, 150)), 4, **asked)  # the first is given up
    finish(machine, tiers)
    for pool in machine.pools:
        pool.drop_cached()
    assert tiers.tidy() is None and tiers.host and tiers.host.num_blocks
    tiers.close()
    assert not [*(tmp_path / "blocks").glob("*.segment")]


def test_a_deleted_chat_is_gone_from_everywhere(tmp_path: Path) -> None:
    machine = Machine()
    engine = Engine(machine.scheduler, SimpleNamespace())
    engine.tiers = tiers = below(machine, tmp_path, host_bytes=10**6)
    shared = list(range(20))
    machine.add([*shared, *range(100, 130)], 4, group="gone", keep=True)
    machine.add([*shared, *range(200, 230)], 4, group="stays", keep=True)
    finish(machine, tiers)
    late = machine.add([*shared, *range(300, 330)], 4, group="gone", keep=True)
    machine.step()
    engine.forget("gone")
    machine.scheduler.check()
    finish(machine, tiers)  # it was answering
    saved(tiers)
    assert tiers.disk
    assert machine.pools[0].lookup(late.chain(8, BLOCK))  # in memory, until its room is needed
    assert not tiers.disk.has(0, late.chain(8, BLOCK))
    again = machine.add([*shared, *range(100, 130)], 4)
    stays = machine.add([*shared, *range(200, 230)], 4)
    finish(machine, tiers)
    assert again.num_cached == 20 and stays.num_cached == 48
    tiers.close()
    fresh = Machine()
    tiers = below(fresh, tmp_path)
    gone, kept = (fresh.make([*shared, *range(n, n + 30)], 4) for n in (100, 200))
    for seq in (gone, kept):
        fresh.scheduler.add(seq, 0.0)
    finish(fresh, tiers)
    assert (gone.num_cached, kept.num_cached) == (20, 48)
    tiers.close()


def test_a_swapped_block_comes_back_from_the_host() -> None:
    machine = Machine(num_blocks=16)
    tiers = below(machine, host_bytes=10**6)
    first = machine.add(50, 4)
    finish(machine, tiers)
    machine.add(list(range(100, 150)), 4)
    finish(machine, tiers)
    again = machine.add(first.tokens, 4)
    finish(machine, tiers)
    assert again.num_cached == 52 and tiers.host and tiers.host.hits


def test_the_host_gives_up_the_oldest() -> None:
    machine = Machine()
    chains = [machine.make([n] * 8).chains for n in range(3)]
    host, root = Host(20), machine.scheduler.root("me")
    chains = [root.extend((n,) * 4) for n in range(3)]

    def put(n: int, num_bytes: int = 8) -> None:
        host.put(Block(0, chains[n], num_bytes, lambda: bytes([n]) * num_bytes))

    for n in range(3):
        put(n)
    assert [host.has(0, chain) for chain in chains] == [False, True, True] and host.num_bytes == 16
    assert len(host._coming) == 2, "what it gave up is waited for"
    host.load([(0, chains[1])])
    put(0)
    assert [host.has(0, chain) for chain in chains] == [True, True, False]
    put(2, 100)  # larger than all of it
    assert not host.has(0, chains[2]) and host.load([(0, chains[2])]).result() == [None]
    host.forget([chain.chain_hash for chain in chains])
    assert host.num_bytes == host.num_blocks == 0


def test_ending_writes_for_a_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.2)
    machine = Machine()
    tiers = below(machine, tmp_path)
    assert tiers.disk
    machine.add(50, 4, **KEPT)
    finish(machine, tiers)
    gate = threading.Event()
    tiers.disk._writer.submit(gate.wait, 30)
    timer = threading.Timer(1.0, gate.set)
    timer.start()
    tiers.close()
    assert not [*tmp_path.glob("*.segment")]  # given up, and nothing half
    timer.cancel()
