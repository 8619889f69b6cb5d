"""A memory as it looks on a busy day: chats that share how they begin, idle ones, free blocks."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random

from engine import Group, MemoryPicture, MemoryPlan, PoolPicture, Second, TierPicture
from engine.scheduling.block_pool import BlockPool, PageKind

SIZE = 368_640  # bytes of a block of 16 tokens in a model of 30 layers
SHARED = 24  # blocks that all chats begin with

PLAN = MemoryPlan(
    block_size=16,
    context_length=8192,
    kinds=(PageKind("full", tuple(range(30)), SIZE),),
    num_blocks=(4097,),
    kv_bytes=4097 * SIZE,
    weights_bytes=98_400_000,
    activation_bytes=61_300_000,
    max_num_seqs=16,
    max_step_tokens=512,
    max_rows=48,
    reasons=(
        "A block holds 16 tokens, the best size for this backend.",
        "A chat can be 8,192 tokens long, all that the model was made for.",
        "The pool takes 1.51 GB, room for 8 chats of 8,192 tokens, as many as wanted.",
    ),
)


def memory_picture(
    chats: Sequence[str], num_blocks: int = 4096, seed: int = 0, kept: int = 0
) -> MemoryPicture:
    """Each chat holds a few hundred blocks; every other one is idle. Another seed, another moment."""
    rng = Random(seed)
    states, owners, sharers = bytearray(num_blocks), array("H", bytes(2 * num_blocks)), bytearray(num_blocks)
    groups, at = [], SHARED
    for number, name in enumerate(chats, 1):
        length = min(rng.randrange(num_blocks // 40, num_blocks // 8), num_blocks - kept - at)
        blocks = [*range(SHARED), *range(at, at + length)]
        at += length
        state = BlockPool.USED if number % 2 else BlockPool.CACHED
        for block in blocks:
            states[block] = max(states[block], state)
            owners[block] = owners[block] or number
            sharers[block] = min(255, sharers[block] + 1)
        used = len(blocks) if state == BlockPool.USED else 0
        groups.append(Group(name, len(blocks), used, SHARED if len(chats) > 1 else 0))
    states[num_blocks - kept :] = bytes([BlockPool.KEPT]) * kept
    pool = PoolPicture(
        *("full", 0, 16, SIZE, at), tuple(groups), bytes(states), owners.tobytes(), bytes(sharers)
    )
    recent = tuple(
        Second(
            age,
            rng.randint(120, 190),
            rng.choice((0, 0, 0, 480)),
            1 + (150 - age) // 40,
            2 * (150 - age),
            at // 2,
        )
        for age in range(150, 0, -1)
        if age % 37
    )
    return MemoryPicture(
        (pool,), recent, True, (TierPicture("disk", 2_340_000_000, 6_348, 20 * 10**9, 1_204),)
    )
