"""Blocks on the disk: they come back as they were or not at all, whatever happens to the files."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from engine.scheduling.block_pool import Chain, Identity
from engine.tiers import disk as module
from engine.tiers.disk import Disk
from engine.tiers.segments import SUFFIX, Block, Seal
from engine.tiers.store import ABANDONED_S, BlockStore
from tests.source_tree import ROOT

SIZE, SECRET, COMPUTED_BY = 4096, b"secret", "these kernels"
ROOT_CHAIN = Chain.root(SECRET, Identity("person", "model", "int4", "float16", 16))


def chain_of(number: int, length: int = 3) -> list[Chain]:
    """The chain of a text's first blocks; another number, another text."""
    chain, chains = ROOT_CHAIN, []
    for place in range(length):
        chains.append(chain := chain.extend(tuple(range(number, number + 16 * place + 16))[-16:]))
    return chains


def blocks_of(chains: list[Chain]) -> list[Block]:
    return [Block(0, chain, SIZE, partial(bytes, [chain.chain_hash[0]] * SIZE)) for chain in chains]


def open_disk(
    folder: Path, quota: int = 2**40, computed_by: str = COMPUTED_BY, secret: bytes = SECRET
) -> Disk:
    return Disk(BlockStore(folder), Seal(secret, computed_by), quota)


def settled(disk: Disk) -> Disk:
    """Everything that was asked for is done."""
    disk._writer.submit(lambda: None).result()
    return disk


def keep(disk: Disk, chat: str, chains: list[Chain]) -> None:
    disk.use(chat, [chain.chain_hash for chain in chains])
    disk.save(blocks_of(chains))
    settled(disk)


def load(disk: Disk, chains: list[Chain]) -> list[bytes | None]:
    found = disk.load([(0, chain) for chain in chains]).result()
    return [None if contents is None else bytes(contents) for contents in found]


def contents(chains: list[Chain]) -> list[bytes]:
    return [bytes(block.contents) for block in blocks_of(chains)]


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "blocks"


@pytest.fixture
def disk(folder: Path) -> Iterator[Disk]:
    disk = open_disk(folder)
    yield disk
    disk.close(5.0)


def test_another_start_finds_them_and_the_files_are_private(disk: Disk, folder: Path) -> None:
    chains = chain_of(1)
    keep(disk, "a", chains)
    assert load(disk, chains) == contents(chains) and disk.hits == 3
    disk.close(5.0)  # more than once does no harm
    again = open_disk(folder)
    assert load(again, chains) == contents(chains)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    again.close(5.0)


def test_what_is_still_being_written_is_there(disk: Disk) -> None:
    gate, chains = threading.Event(), chain_of(1)
    disk._writer.submit(gate.wait)
    disk.save(blocks_of(chains))
    assert disk.has(0, chains[0]) and load(disk, chains) == contents(chains)
    gate.set()


@pytest.mark.parametrize("other", [{"computed_by": "other kernels"}, {"secret": b"another installation"}])
def test_what_others_computed_is_not_seen(disk: Disk, folder: Path, other: dict) -> None:
    chains = chain_of(1)
    keep(disk, "a", chains)
    stranger = open_disk(folder, **other)
    assert not stranger.has(0, chains[0]) and load(stranger, chains) == [None] * 3
    stranger._places = dict(disk._places)  # an index that lies
    assert load(stranger, chains) == [None] * 3
    stranger.close(5.0)


@pytest.mark.parametrize("place", [0, 8, 24, 40, 60, 80, 300, 4000, 4300, -1])
def test_a_flipped_bit_anywhere_is_a_miss(disk: Disk, folder: Path, place: int) -> None:
    chains = chain_of(1)
    keep(disk, "a", chains)
    (path,) = segments(folder)
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    found, right = load(disk, chains), contents(chains)
    assert sum(each is None for each in found) == 1
    assert all(each in (None, whole) for each, whole in zip(found, right, strict=True))
    damaged = chains[found.index(None)]
    assert not disk.has(0, damaged)  # it is computed and written anew
    keep(disk, "a", [damaged])
    assert load(disk, chains) == right


@pytest.mark.parametrize("length", [0, 1, 100, SIZE, 2 * SIZE + 700])
def test_a_cut_file_is_a_miss(disk: Disk, folder: Path, length: int) -> None:
    chains = chain_of(1)
    keep(disk, "a", chains)
    (path,) = segments(folder)
    os.truncate(path, length)
    assert load(disk, chains) == [None] * 3 and not disk.has(0, chains[0])


def test_records_that_changed_places_are_misses(disk: Disk, folder: Path) -> None:
    chains = chain_of(1)
    keep(disk, "a", chains)
    one, two = disk._places[0, chains[0].chain_hash], disk._places[0, chains[1].chain_hash]
    disk._places[0, chains[0].chain_hash], disk._places[0, chains[1].chain_hash] = two, one
    assert load(disk, chains)[:2] == [None, None]


def test_a_foreign_file_in_its_place_is_a_miss(disk: Disk, folder: Path) -> None:
    chains = chain_of(1)
    keep(disk, "a", chains)
    (path,) = segments(folder)
    path.unlink()
    os.mkfifo(path)  # whoever opened it would wait for ever
    assert load(disk, chains) == [None] * 3


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "x" * 32, ""])
def test_an_index_can_not_lead_elsewhere(disk: Disk, folder: Path, name: str) -> None:
    chains = chain_of(1)
    keep(disk, "a", chains)
    target = folder.parent.parent / "secret.segment"
    target.write_bytes(b"s")
    with sqlite3.connect(folder / "index.db") as db:
        db.execute("UPDATE segments SET name = ?", [name])
    again = open_disk(folder)
    assert load(again, chains) == [None] * 3
    again.forget("a")
    settled(again).close(5.0)
    assert target.exists()


def test_without_its_index_it_begins_anew(disk: Disk, folder: Path) -> None:
    chains, more = chain_of(1), chain_of(2)
    keep(disk, "a", chains)
    (folder / "index.db").unlink()
    keep(disk, "b", more)
    assert load(disk, more) == contents(more)
    again = open_disk(folder)
    assert load(again, more) == contents(more) and not again.has(0, chains[0])
    again.close(5.0)


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100, None])
def test_a_damaged_index_is_begun_anew(disk: Disk, folder: Path, damage: bytes | None) -> None:
    chains, index = chain_of(1), folder / "index.db"
    keep(disk, "a", chains)
    data = bytearray(index.read_bytes())
    data[4096:12288] = bytes(8192)
    index.write_bytes(data if damage is None else damage)
    again = open_disk(folder)
    assert load(again, chains) in ([None] * 3, contents(chains))
    keep(again, "a", chains)
    assert load(again, chains) == contents(chains)
    again.close(5.0)


def test_a_folder_that_is_removed_under_it(disk: Disk, folder: Path) -> None:
    chains, more = chain_of(1), chain_of(2)
    keep(disk, "a", chains)
    shutil.rmtree(folder)
    assert load(disk, chains) == [None] * 3
    keep(disk, "b", more)
    assert load(disk, more) == contents(more)


def test_a_full_disk_is_left_alone_for_a_while(
    disk: Disk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    chains = chain_of(1)
    monkeypatch.setattr("engine.tiers.store.write_segment", full)
    keep(disk, "a", chains)
    assert disk.wait_s > 30 and not disk.has(0, chains[0]) and load(disk, chains) == [None] * 3
    monkeypatch.undo()
    monkeypatch.setattr(disk, "_resting", 0.0)
    keep(disk, "a", chains)
    assert load(disk, chains) == contents(chains)


def test_it_leaves_room_on_the_disk(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=module.LEFT_FREE))
    keep(disk, "a", chain_of(1))
    assert not disk.has(0, chain_of(1)[0]) and disk.wait_s > 30


def test_the_quota_lets_go_of_what_was_used_longest_ago(folder: Path) -> None:
    texts = [chain_of(number) for number in range(5)]
    disk = open_disk(folder, quota=3 * (3 * SIZE + 1000))
    for chains in texts[:3]:
        keep(disk, "a", chains)
    load(disk, texts[0])
    settled(disk)
    keep(disk, "a", texts[3])
    here = [disk.has(0, chains[0]) for chains in texts]
    assert here == [True, False, True, True, False] and len(segments(folder)) == 3
    assert disk.totals[0] <= disk.quota and disk.totals[1] == 9
    disk.close(5.0)
    small = open_disk(folder, quota=100)  # less than a block
    keep(small, "a", texts[4])
    assert not small.has(0, texts[4][0])
    small.close(5.0)


def test_deleting_a_chat_deletes_what_only_it_used(disk: Disk, folder: Path) -> None:
    shared, mine, yours = chain_of(1, 2), chain_of(2), chain_of(3)
    disk.use("me", [chain.chain_hash for chain in shared + mine])
    disk.save(blocks_of(shared + mine))
    keep(disk, "you", yours)
    disk.use("you", [chain.chain_hash for chain in shared])
    secret = mine[0].tokens[5].to_bytes(8, "little") + mine[0].tokens[6].to_bytes(8, "little")
    assert any(secret in path.read_bytes() for path in segments(folder))
    disk.forget("me")
    settled(disk)
    assert not any(disk.has(0, chain) for chain in mine)
    assert load(disk, shared + yours) == contents(shared + yours)
    assert not any(contents(mine)[0] in path.read_bytes() for path in segments(folder))
    disk.forget("you")
    settled(disk)
    assert not segments(folder) and disk.totals == (0, 0)


def test_a_store_alone_forgets_chats_that_are_gone(disk: Disk, folder: Path) -> None:
    kept, gone = chain_of(1), chain_of(2)
    keep(disk, "kept", kept)
    keep(disk, "gone", gone)
    assert {place.segment for place in BlockStore(folder).keep_only(["kept", "never seen"])}
    assert load(disk, gone) == [None] * 3 and load(disk, kept) == contents(kept)
    assert BlockStore(folder / "nowhere").keep_only([]) == [] and not (folder / "nowhere").exists()


def test_clear_leaves_nothing(disk: Disk, folder: Path) -> None:
    keep(disk, "a", chain_of(1))
    disk.clear()
    assert disk.totals == (0, 0)
    assert not segments(folder) and not disk.has(0, chain_of(1)[0])


def test_two_processes_share_a_folder(disk: Disk, folder: Path) -> None:
    other = open_disk(folder)
    threads = [
        threading.Thread(target=lambda n=n, d=d: keep(d, str(n), chain_of(n)))
        for n, d in enumerate((disk, other) * 6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    third = open_disk(folder)
    for number in range(12):
        assert load(third, chain_of(number)) == contents(chain_of(number))
    other.clear()
    assert load(disk, chain_of(0)) == [None] * 3 == load(third, chain_of(1))
    for each in (other, third):
        each.close(5.0)


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.engine.tiers.test_disk import chain_of, keep, open_disk
disk = open_disk(Path({folder!r}))
for number in range(10_000):
    keep(disk, str(number), chain_of(number, 40))
    print(number, flush=True)
"""


def test_killed_while_writing(folder: Path) -> None:
    code = WRITER.format(root=str(ROOT), folder=str(folder))
    for wanted in (1, 3, 8):
        with subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout
            written = [int(child.stdout.readline()) for _ in range(wanted)]
            child.send_signal(signal.SIGKILL)
            rest = child.stdout.read()
        disk = open_disk(folder)
        for number in written:
            assert load(disk, chain_of(number, 40)) == contents(chain_of(number, 40))
        for number in range(len(written) + rest.count("\n"), len(written) + rest.count("\n") + 3):
            right = contents(chain_of(number, 40))
            assert all(e in (None, w) for e, w in zip(load(disk, chain_of(number, 40)), right, strict=True))
        disk.close(5.0)


def test_what_a_killed_writer_left_is_removed(disk: Disk, folder: Path) -> None:
    keep(disk, "a", chain_of(1))
    old, new = folder / ("a" * 32 + SUFFIX), folder / ("b" * 32 + SUFFIX)
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, old.stat().st_mtime - ABANDONED_S - 1))
    settled(open_disk(folder)).close(5.0)
    assert not old.exists() and new.exists() and load(disk, chain_of(1)) == contents(chain_of(1))


def test_its_speed_is_measured(disk: Disk, folder: Path) -> None:
    chains = chain_of(1, 50)
    keep(disk, "a", chains)
    again = open_disk(folder)
    again._reader.submit(lambda: None).result()
    assert again.bytes_per_s != module.FIRST_GUESS  # by what was there
    assert again.seconds(10**6) == 10**6 / again.bytes_per_s
    before = again.seconds(10**6)
    again.doubt(0.25)
    assert again.seconds(10**6) == pytest.approx(4 * before)
    again.close(5.0)


def test_a_queue_that_is_full_says_so(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUEUE", 3 * SIZE)
    gate: Future[None] = Future()
    disk._writer.submit(gate.result)
    assert disk.wait_s == 0
    disk.save(blocks_of(chain_of(1)))
    assert disk.wait_s == module.LOOK_S
    gate.set_result(None)
    assert settled(disk).wait_s == 0
