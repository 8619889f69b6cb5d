"""Which blocks go down to host and disk, which come back, and when. Knows neither bytes nor files.

Down: what a chat leaves behind is written to the disk while the engine has nothing to do; what the device
gives up before that is taken at that moment, as is everything for the host tier. Up: before a sequence
starts, what its prefix finds below is put into blocks of the device, which are cached from then on: the
scheduler finds them like any others. Until they are there the sequence waits, and others go first. It is not
done where to compute them would take less time, by the pace and the measured speed of the disk; where the
disk is slower than it was, they are computed after all.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence as Seq
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet

from ..scheduling.block_pool import PADDING, Chain
from ..scheduling.scheduler import Scheduler
from ..scheduling.sequence import Sequence
from .disk import Disk
from .host import Host
from .picture import TierPicture
from .segments import Block, Contents, Copied

SEGMENT = 8 << 20  # bytes that are written together, and taken from the device at once while it is idle
PORTION = 32 << 20  # bytes that are read together
PATIENCE_S = 0.005  # how long the engine's thread sleeps when all it could do is on its way
CLOSE_S = 5.0  # how long ending may take
LEAST_S = 1.0  # so long is waited in any case: another program may keep the disk busy for a moment
# what the disk's speed is multiplied by when it was late; and when it was too slow to be used, so that it is
# tried again one day
LATE, DOUBT = 1 / 4, 1.05

Wanted = tuple[int, Chain]  # a block by its kind and chain


class Device(Protocol):
    """Whoever can read and write the memory of blocks."""

    def read_block(self, kind: int, block: int) -> Copied: ...
    def write_block(self, kind: int, block: int, contents: Contents) -> None: ...


class Below(Protocol):
    """A tier to read from."""

    def has(self, kind: int, chain: Chain) -> bool: ...
    def load(self, wanted: Seq[Wanted]) -> Future[list[Contents | None]]: ...
    def seconds(self, num_bytes: int) -> float: ...


@dataclass(slots=True)
class Fetch:
    """What a waiting sequence gets from below: the part on its way, and the rest in the order of its text."""

    rest: deque[tuple[Below, Wanted]]
    until: float  # it would have been computed by then
    part: list[Wanted] = field(default_factory=list)
    answer: Future[list[Contents | None]] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class Outlook:
    """How many blocks of a prefix are here, and with those below; which to load from where; seconds that it
    takes, and that computing them would.
    """

    here: int
    there: int
    wanted: list[tuple[Below, Wanted]]
    load_s: float
    compute_s: float

    @property
    def is_worth_it(self) -> bool:
        return bool(self.wanted) and self.load_s < self.compute_s


class Tiers:
    """The tiers below the device. The engine's thread calls, unless a method says otherwise."""

    def __init__(
        self,
        scheduler: Scheduler,
        device: Device,
        host: Host | None,
        disk: Disk | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host, self.disk = host, disk
        self._tables, self._pace, self._device, self._clock = scheduler.tables, scheduler.pace, device, clock
        self._below: tuple[Below, ...] = tuple(tier for tier in (host, disk) if tier)
        # what chats that may be written left behind, by chain hash, the oldest first; and which chats
        self._unsaved: dict[bytes, tuple[Chain, set[str]]] = {}
        self._batch: list[Block] = []
        self._gone: set[str] = set()  # chats that were deleted; what still runs of them is not kept
        self._fetches: WeakKeyDictionary[Sequence, Fetch] = WeakKeyDictionary()
        self._served: WeakSet[Sequence] = WeakSet()  # once each, until they have run: or they never would
        scheduler.fetch, self._tables.on_release = self.fetch, self._released
        for kind, pool in enumerate(self._tables.pools):
            pool.on_give_up = partial(self._given_up, kind)

    # ---- up

    def fetch(self, seq: Sequence) -> bool:
        """Put what came from below into the pools; whether more is on its way, so that it should wait."""
        fetch = self._fetches.get(seq) or (None if seq in self._served else self._begin(seq))
        while fetch:
            is_late = not fetch.answer.done() and self._clock() > fetch.until
            if is_late and self.disk:
                self.disk.doubt(LATE)
            elif not fetch.answer.done():
                return True
            if is_late or not (self._land(seq, fetch) and self._go_on(fetch)):
                del self._fetches[seq]
                self._served.add(seq)
                break
        return False

    def rest(self) -> None:
        """Sleep a little, until something has come. For when there is nothing else to do."""
        wait([fetch.answer for fetch in self._fetches.values()], PATIENCE_S, FIRST_COMPLETED)

    def foresee(self, seq: Sequence) -> tuple[int, float]:
        """How many blocks of its prefix need not be computed, and how long they take. For any thread."""
        outlook = self._look(seq)
        return (outlook.there, outlook.load_s) if outlook.is_worth_it else (outlook.here, 0.0)

    def _look(self, seq: Sequence) -> Outlook:
        tables, pools, size = self._tables, self._tables.pools, self._tables.block_size
        here = tables.reach(seq, [pool.lookup for pool in pools])
        there = tables.reach(seq, [partial(self._find, kind) for kind in range(len(pools))])
        wanted: list[tuple[Below, Wanted]] = []
        for place in range(there) if there > here else ():
            chain = seq.chain(place, size)
            for kind, (pool, first) in enumerate(zip(pools, tables.firsts(there * size))):
                if place >= first and not pool.lookup(chain):
                    wanted += [(tier, (kind, chain)) for tier in self._below if tier.has(kind, chain)][:1]
        load_s = sum(tier.seconds(pools[kind].kind.bytes_per_block) for tier, (kind, _) in wanted)
        compute_s = self._pace.prompts_s([(here * size, (there - here) * size)])
        return Outlook(here, there, wanted, load_s, compute_s)

    def _find(self, kind: int, chain: Chain) -> int:
        return self._tables.pools[kind].lookup(chain) or any(tier.has(kind, chain) for tier in self._below)

    def _begin(self, seq: Sequence) -> Fetch | None:
        self._send(all_of_it=True)
        outlook = self._look(seq)
        if not outlook.is_worth_it:
            if outlook.wanted and self.disk:
                self.disk.doubt(DOUBT)
            return None
        fetch = Fetch(deque(outlook.wanted), self._clock() + max(LEAST_S, outlook.compute_s))
        self._go_on(fetch)
        self._fetches[seq] = fetch
        return fetch

    def _go_on(self, fetch: Fetch) -> bool:
        """Ask for the next part, all of one tier; False if that was all."""
        if not fetch.rest:
            return False
        tier, fetch.part, size = fetch.rest[0][0], [], 0
        while fetch.rest and fetch.rest[0][0] is tier and size < PORTION:
            _, (kind, chain) = fetch.rest.popleft()
            fetch.part.append((kind, chain))
            size += self._tables.pools[kind].kind.bytes_per_block
        fetch.answer = tier.load(fetch.part)
        return True

    def _land(self, seq: Sequence, fetch: Fetch) -> bool:
        """Make a part cached blocks. Not one of its prefix is given up for them. False if one is missing."""
        if fetch.answer.exception():  # no memory to read into
            return False
        held = [(p, b) for p, table in zip(self._tables.pools, self._tables.prefix(seq)) for b in table if b]
        for pool, block in held:
            pool.share(block)
        try:
            return all(
                contents is not None and self._put(kind, chain, contents)
                for (kind, chain), contents in zip(fetch.part, fetch.answer.result(), strict=True)
            )
        finally:
            for pool, block in reversed(held):
                pool.release(block)

    def _put(self, kind: int, chain: Chain, contents: Contents) -> bool:
        pool = self._tables.pools[kind]
        if pool.lookup(chain) != PADDING:
            return True  # somebody computed it meanwhile
        if not pool.num_available:
            return False
        block = pool.acquire()
        self._device.write_block(kind, block, contents)
        pool.register(block, chain)
        pool.release(block)
        return True

    # ---- down

    def settle(self) -> None:
        """A step is done, and with it every copy that was asked for before it: let pinned memory go."""
        if self.host:
            self.host.settle()

    def tidy(self) -> float | None:
        """Save a little of what was left behind; seconds until there may be more to do, None: that was all.

        For when there is nothing else to do.
        """
        if not self.disk:
            return None
        size = 0
        while self._unsaved and size < SEGMENT:
            if wait_s := self.disk.wait_s:
                return wait_s
            chain, _ = self._unsaved.pop(next(iter(self._unsaved)))
            size += self._save(chain)
        self._send(all_of_it=not self._unsaved)
        return 0.0 if self._unsaved else None

    def _released(self, seq: Sequence) -> None:
        """A sequence is about to give its blocks back."""
        self._served.discard(seq)
        chains = seq.chains[: seq.num_computed // self._tables.block_size]
        if not (self.disk and seq.keep and seq.group and chains) or seq.group in self._gone:
            return
        self.disk.use(seq.group, [chain.chain_hash for chain in chains])
        for chain in chains:
            if not any(self.disk.has(kind, chain) for kind in range(len(self._tables.pools))):
                self._unsaved.setdefault(chain.chain_hash, (chain, set()))[1].add(seq.group)

    def _given_up(self, kind: int, block: int, chain: Chain) -> None:
        """The device needs a cached block for something else; its contents are there for this moment."""
        if self.host:
            num_bytes = self._tables.pools[kind].kind.bytes_per_block
            self.host.put(Block(kind, chain, num_bytes, self._device.read_block(kind, block)))
        if self.disk and self._unsaved.pop(chain.chain_hash, None) and not self.disk.wait_s:
            self._save(chain)

    def _save(self, chain: Chain) -> int:
        """Take a chain's blocks, of all kinds that have one; how many bytes."""
        size = 0
        for kind, pool in enumerate(self._tables.pools):
            if block := pool.lookup(chain):
                num_bytes = pool.kind.bytes_per_block
                self._batch.append(Block(kind, chain, num_bytes, self._device.read_block(kind, block)))
                size += num_bytes
        self._send(all_of_it=False)
        return size

    def _send(self, all_of_it: bool) -> None:
        if self._batch and (all_of_it or sum(block.num_bytes for block in self._batch) >= SEGMENT):
            assert self.disk
            self.disk.save(self._batch)
            self._batch = []

    # ---- away

    def forget(self, chat: str, hashes: set[bytes]) -> None:
        """A chat was deleted, and nobody but it used these chains."""
        self._gone.add(chat)
        for chain_hash, (_, chats) in [*self._unsaved.items()]:
            chats.discard(chat)
            if not chats:
                del self._unsaved[chain_hash]
        self._send(all_of_it=True)  # what is of it in there is removed with the rest
        if self.host:
            self.host.forget(hashes)
        if self.disk:
            self.disk.forget(chat)

    def clear_disk(self) -> None:
        """Remove everything from the disk. Raises OSError."""
        if self.disk:
            self._batch, self._unsaved = [], {}
            self.disk.clear()

    def close(self, save: bool = True) -> None:
        """Write what was left behind, as far as there is time. Once the engine's thread has ended."""
        if not self.disk:
            return
        end = time.monotonic() + CLOSE_S
        while save and (wait_s := self.tidy()) is not None and time.monotonic() + wait_s < end:
            time.sleep(wait_s)
        self.disk.close(max(0.0, end - time.monotonic()))

    def picture(self) -> tuple[TierPicture, ...]:
        """The tiers that there are, the nearest first."""
        pictures = []
        if host := self.host:
            pictures.append(TierPicture("host", host.num_bytes, host.num_blocks, host.most, host.hits))
        if disk := self.disk:
            pictures.append(TierPicture("disk", *disk.totals, disk.quota, disk.hits))
        return tuple(pictures)
