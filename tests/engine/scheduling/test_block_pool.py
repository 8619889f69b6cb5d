"""The pool's counts, its cache, and that a prefix is only ever found by one who has the very same tokens."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from engine.scheduling.block_pool import PADDING, BlockPool, Chain, Identity, PageKind

FULL = PageKind("full", (0,), 1)
IDENTITY = Identity("person", "model", "Int4", "float16", 4)
ROOT = Chain.root(b"secret", IDENTITY)


def chain_of(*blocks: tuple[int, ...], root: Chain = ROOT) -> list[Chain]:
    """One chain per block, each on top of the last."""
    chains = [root]
    for tokens in blocks:
        chains.append(chains[-1].extend(tokens))
    return chains[1:]


@pytest.mark.parametrize("window", [0, 1, 2, 3, 4, 5, 8, 9, 17])
def test_what_a_window_needs(window: int) -> None:
    kind = PageKind("", (), 1, window)
    for block_size in (1, 2, 4, 16):
        for at in range(60):
            needed = [p // block_size for p in range(at) if not window or p > at - window]
            first = kind.first_block(at, block_size)
            assert first <= min(needed, default=at // block_size)
            assert not window or first == max(0, at - window + 1) // block_size
        if window:
            for new in range(1, 20):
                touched = [
                    (at + new - 1) // block_size - kind.first_block(at, block_size) for at in range(100)
                ]
                assert kind.blocks_across(new, block_size) == max(touched) + 1


def test_blocks_come_and_go() -> None:
    pool = BlockPool(FULL, 4, 4)
    blocks = [pool.acquire() for _ in range(3)]
    assert sorted(blocks) == [1, 2, 3] and pool.num_available == 0 and pool.num_used == 3
    pool.share(blocks[0])
    assert pool.is_shared(blocks[0]) and not pool.is_shared(blocks[1])
    pool.release(blocks[0])
    pool.check([blocks])
    pool.release(blocks[0])
    assert pool.num_available == 1 and pool.num_cached == 0 and pool.acquire() == blocks[0]
    pool.release(blocks[1])
    with pytest.raises(AssertionError, match="once too often"):
        pool.release(blocks[1])


def test_a_released_prefix_is_found_again() -> None:
    pool = BlockPool(FULL, 4, 4)
    (chain,) = chain_of((1, 2, 3, 4))
    block = pool.acquire()
    assert pool.lookup(chain) == PADDING
    pool.register(block, chain)
    assert pool.lookup(chain) == block
    pool.release(block)
    assert pool.num_cached == 1 and pool.is_cached(block) and pool.num_used == 0
    assert pool.share(pool.lookup(chain)) == block and pool.num_cached == 0
    pool.check([[block]])


def test_cached_blocks_are_given_up_oldest_and_tail_first() -> None:
    pool = BlockPool(FULL, 5, 4)
    old, new = chain_of((1,) * 4, (2,) * 4), chain_of((3,) * 4, (4,) * 4)
    for chains in (old, new):
        blocks = [pool.acquire() for _ in chains]
        for block, chain in zip(blocks, chains):
            pool.register(block, chain)
        for block in reversed(blocks):
            pool.release(block)
    assert pool.num_available == pool.num_cached == 4
    for gone in (old[1], old[0], new[1], new[0]):
        assert pool.lookup(gone)
        pool.acquire()
        assert pool.lookup(gone) == PADDING
    pool.check([[1, 2, 3, 4]])


def test_a_second_block_with_the_same_chain_stays_private() -> None:
    pool = BlockPool(FULL, 4, 4)
    (chain,), (again,) = chain_of((1, 2, 3, 4)), chain_of((1, 2, 3, 4))
    first, second = pool.acquire(), pool.acquire()
    pool.register(first, chain)
    pool.register(second, again)
    assert pool.lookup(again) == first
    pool.release(second)
    assert pool.num_cached == 0 and pool.num_available == 2


def test_a_block_about_to_be_written_is_forgotten() -> None:
    pool = BlockPool(FULL, 4, 4)
    (chain,) = chain_of((1, 2, 3, 4))
    block = pool.acquire()
    pool.register(block, chain)
    pool.unregister(block)
    assert pool.lookup(chain) == PADDING
    pool.check([[block]])


# ---- who may find what


@pytest.mark.parametrize(
    "change",
    [
        {"owner": "other"},
        {"model": "other"},
        {"formats": "Int8"},
        {"kv_dtype": "float32"},
        {"block_size": 8},
        {"adapter": "style"},
        {"rank": 1},
        {"num_ranks": 2},
    ],
)
def test_every_part_of_the_identity_keeps_prefixes_apart(change: dict[str, str]) -> None:
    pool = BlockPool(FULL, 4, 4)
    (mine,) = chain_of((1, 2, 3, 4))
    pool.register(pool.acquire(), mine)
    (theirs,) = chain_of((1, 2, 3, 4), root=Chain.root(b"secret", replace(IDENTITY, **change)))
    (same,) = chain_of((1, 2, 3, 4), root=Chain.root(b"secret", replace(IDENTITY)))
    assert pool.lookup(same) and not pool.lookup(theirs)
    assert mine.chain_hash == same.chain_hash != theirs.chain_hash and not mine.same(theirs)


def test_the_hash_covers_key_ancestors_tokens_and_extras() -> None:
    chains = [
        *chain_of((1, 2), (3, 4)),
        *chain_of((1, 2), (3, 4), root=Chain.root(b"another secret", IDENTITY)),
        *chain_of((3, 4), (1, 2)),
        ROOT.extend((1, 2), b"a picture"),
        ROOT.extend((1, 2), b"another"),
        ROOT.extend((1, 2), b"a picture").extend((3, 4)),
        ROOT,
    ]
    assert len({chain.chain_hash for chain in chains}) == len(chains)
    assert not any(a.same(b) for a in chains for b in chains if a is not b and a.key == b.key)


def test_a_collision_is_a_miss() -> None:
    """Hashes of one byte collide all the time; what is found still carries exactly the tokens asked for."""
    rng = Random(1)
    pool = BlockPool(FULL, 400, 2)
    roots = [Chain.root(b"s", replace(IDENTITY, owner=owner), hash_size=1) for owner in "ab"]
    carried: dict[int, tuple[str, ...]] = {}
    hits = collisions = 0
    for _ in range(20_000):
        owner, depth = rng.randrange(2), rng.randint(1, 4)
        text = [(rng.randrange(3), rng.randrange(3)) for _ in range(depth)]
        chain = chain_of(*text, root=roots[owner])[-1]
        meaning = (str(owner), *map(str, text))
        if block := pool.lookup(chain):
            assert carried[block] == meaning
            hits += 1
        elif chain.chain_hash in pool._blocks:
            collisions += 1
        elif pool.num_available:
            block = pool.acquire()
            pool.register(block, chain)
            carried[block] = meaning
    assert hits > 100 and collisions > 1000


def test_ancestors_count_even_if_their_hashes_collide() -> None:
    root = Chain.root(b"s", IDENTITY, hash_size=1)
    heads: dict[bytes, list[Chain]] = {}
    for token in range(257):
        head = root.extend((token,))
        heads.setdefault(head.chain_hash, []).append(head)
    one, other, *_ = max(heads.values(), key=len)
    mine, theirs = one.extend((7,)), other.extend((7,))
    assert mine.chain_hash == theirs.chain_hash and not mine.same(theirs)


def test_comparing_long_equal_chains_block_by_block_is_cheap() -> None:
    text = [(n, n) for n in range(3000)]
    mine, theirs = chain_of(*text), chain_of(*text)
    for ours, other in zip(mine, theirs):
        assert ours.same(other) and ours.parent is other.parent  # the next comparison ends after one block


# ---- the check, and a long random life


def test_check_sees_each_kind_of_damage() -> None:
    def pool() -> tuple[BlockPool, list[list[int]]]:
        pool = BlockPool(FULL, 6, 4)
        used, cached, _ = pool.acquire(), pool.acquire(), pool.acquire()
        for block, chain in zip((used, cached), chain_of((1,) * 4, (2,) * 4)):
            pool.register(block, chain)
        pool.release(cached)
        pool.check(tables := [[PADDING, used], [3]])
        return pool, tables

    damage = [
        lambda pool, tables: tables.pop(),
        lambda pool, tables: tables.append([1]),
        lambda pool, tables: pool._free.pop(),
        lambda pool, tables: pool._free.append(pool._free[0]),
        lambda pool, tables: pool._free.append(1),
        lambda pool, tables: pool._cached.popitem(),
        lambda pool, tables: pool.unregister(2),
        lambda pool, tables: pool._blocks.popitem(),
        lambda pool, tables: pool._chains.popitem(),
        lambda pool, tables: pool._refs.__setitem__(1, 2),
    ]
    for harm in damage:
        broken, tables = pool()
        harm(broken, tables)
        with pytest.raises(AssertionError):
            broken.check(tables)


@pytest.mark.parametrize("seed", range(4))
def test_random_life_against_a_plain_model(seed: int) -> None:
    """50,000 events each. The model: who holds a block as lists of one, what it carries as a dict."""
    rng = Random(seed)
    pool = BlockPool(FULL, rng.randint(2, 9), 1)
    tables: list[list[int]] = []
    carried: dict[int, Chain] = {}
    texts = [chain_of(*[(rng.randrange(2),) for _ in range(4)]) for _ in range(6)]
    for _ in range(50_000):
        event = rng.randrange(4) if len(tables) < 10 else 2
        if event == 0 and pool.num_available:
            block = pool.acquire()
            assert [block] not in tables
            carried.pop(block, None)
            tables.append([block])
        elif event == 1 and tables:
            tables.append([pool.share(*rng.choice(tables))])
        elif event == 2 and tables:
            pool.release(*tables.pop(rng.randrange(len(tables))))
        elif event == 3 and tables:
            (block,), chain = rng.choice(tables), rng.choice(rng.choice(texts))
            if block not in carried:
                pool.register(block, chain)
                if pool.lookup(chain) == block:
                    carried[block] = chain
            elif found := pool.lookup(chain):
                tables.append([pool.share(found)])
        assert all(pool.lookup(chain) == block for block, chain in carried.items())
        pool.check(tables)


def test_idle_blocks_are_taken_once_and_only_if_they_were_written() -> None:
    pool = BlockPool(FULL, 6, 4)
    assert pool.take_idle() == [] and pool.num_written == 0
    (chain,) = chain_of((1, 2, 3, 4))
    kept, cached, free = (pool.acquire() for _ in range(3))
    pool.register(cached, chain)
    for block in (cached, free):
        pool.release(block)
    assert pool.num_written == 3 and pool.take_idle() == [free] and pool.take_idle() == []
    assert pool.drop_cached() == 1 and pool.lookup(chain) == PADDING and pool.take_idle() == [cached]
    pool.check([[kept]])
    assert pool.states() == bytes(BlockPool.USED if block == kept else 0 for block in range(1, 6))
