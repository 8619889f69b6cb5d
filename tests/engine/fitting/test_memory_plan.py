"""Sizing: every way a pool can be limited, what is refused, and that each decision comes with its reason."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from engine.config import EngineConfig
from engine.errors import BadRequest, ModelTooLarge
from engine.fitting.abilities import CARDS, PROCESSOR, Card, Machine, choose_device
from engine.fitting.memory_plan import (
    GIB,
    KindFacts,
    MemoryFacts,
    MemoryPlan,
    ModelFacts,
    in_words,
    plan_memory,
)
from engine.scheduling.speculation import MOST_IN_STEP

KIB, MIB = 2**10, 2**20
LAPTOP = MemoryFacts(total=24 * GIB, available=20 * GIB, unified=True)
CARD = MemoryFacts(total=24 * GIB, available=20 * GIB, unified=False)
MODEL = ModelFacts(
    name="small",
    fingerprint="f",
    context_length=8192,
    kinds=(KindFacts("full", (0, 1, 2), 32 * KIB),),
    weights_bytes=1 * GIB,
    activation_bytes_per_token=64 * KIB,
    logits_bytes_per_seq=MIB,
    block_size=16,
)
DEFAULT = EngineConfig()
ACTIVATIONS = 512 * 64 * KIB + (16 + MOST_IN_STEP) * MIB


def pool_blocks(plan: MemoryPlan) -> int:
    return plan.num_blocks[0] - 1


def test_a_roomy_machine_gets_the_chats_it_wants_and_no_more() -> None:
    plan = plan_memory(LAPTOP, MODEL, DEFAULT)
    assert plan.block_size == 16 and plan.context_length == 8192
    assert pool_blocks(plan) * 16 == 8 * 8192
    assert plan.kv_bytes == (pool_blocks(plan) + 1) * 16 * 32 * KIB
    assert plan.weights_bytes == GIB and plan.activation_bytes == ACTIVATIONS
    assert plan.reasons[2] == "The pool takes 2.15 GB, room for 8 chats of 8,192 tokens, as many as wanted."


def test_at_most_half_of_what_is_free_beside_the_weights() -> None:
    plan = plan_memory(LAPTOP, MODEL, replace(DEFAULT, num_chats=1000))
    rest = LAPTOP.available - GIB - ACTIVATIONS
    assert rest // 2 - 2 * MIB < plan.kv_bytes <= rest // 2
    assert "half of the 20.33 GB free" in plan.reasons[2]


def test_four_gib_stay_free_for_other_programs() -> None:
    facts = MemoryFacts(total=24 * GIB, available=7 * GIB, unified=True)
    plan = plan_memory(facts, MODEL, replace(DEFAULT, num_chats=1000))
    left = facts.available - GIB - ACTIVATIONS - plan.kv_bytes
    assert 4 * GIB <= left < 4 * GIB + 2 * MIB
    assert "of 7.52 GB free, 4.29 GB stay free" in plan.reasons[2]


def test_a_machine_too_small_for_that_keeps_a_quarter() -> None:
    facts = MemoryFacts(total=6 * GIB, available=4 * GIB, unified=True)
    plan = plan_memory(facts, MODEL, replace(DEFAULT, num_chats=1000))
    left = facts.available - GIB - ACTIVATIONS - plan.kv_bytes
    assert 1.5 * GIB <= left < 1.5 * GIB + 2 * MIB
    assert "1.61 GB stay free" in plan.reasons[2]


def test_a_card_gives_its_free_memory_times_utilization() -> None:
    plan = plan_memory(CARD, replace(MODEL, graphs_bytes=GIB // 2, tables_bytes=GIB // 2), DEFAULT)
    most = int(CARD.available * 0.9) - GIB - ACTIVATIONS - GIB
    assert most - 2 * MIB < plan.kv_bytes <= most
    assert "90% of the free memory" in plan.reasons[2]


def test_context_shrinks_to_what_the_pool_holds() -> None:
    plan = plan_memory(MemoryFacts(24 * GIB, 5 * GIB + 200 * MIB, True), MODEL, DEFAULT)
    assert 512 <= plan.context_length < 8192 and plan.context_length % 16 == 0
    assert pool_blocks(plan) * 16 == plan.context_length
    assert f"{plan.context_length:,}" in plan.reasons[1] and "8,192" in plan.reasons[1]


def test_too_small_for_one_chat_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        ModelTooLarge, match=r"small needs 1\.07 GB .* 512 tokens, together 1\.09 GB; .* can be"
    ):
        plan_memory(MemoryFacts(24 * GIB, 5 * GIB + 50 * MIB, True), MODEL, DEFAULT)
    with pytest.raises(ModelTooLarge, match="0 bytes can be used"):
        plan_memory(MemoryFacts(2 * GIB, GIB // 2, True), MODEL, DEFAULT)


def test_a_model_made_for_less_than_the_least_context_is_served() -> None:
    plan = plan_memory(LAPTOP, replace(MODEL, context_length=100), DEFAULT)
    assert plan.context_length == 100 and pool_blocks(plan) == 8 * 7


def test_explicit_settings_are_kept() -> None:
    config = EngineConfig(context_length=1000, kv_pool_bytes=100 * MIB, block_size=64, max_num_seqs=3)
    plan = plan_memory(LAPTOP, MODEL, config)
    assert (plan.context_length, plan.block_size, plan.max_num_seqs) == (1000, 64, 3)
    assert 100 * MIB - 2 * MIB < plan.kv_bytes <= 100 * MIB
    assert plan.kinds[0].bytes_per_block == 64 * 32 * KIB
    assert all("as set." in reason for reason in plan.reasons)


def test_a_context_set_for_a_longer_model_is_all_that_this_one_has_or_what_fits() -> None:
    longer = EngineConfig(context_length=32_768)
    assert plan_memory(LAPTOP, MODEL, longer) == plan_memory(LAPTOP, MODEL, DEFAULT)
    tight = replace(longer, kv_pool_bytes=100 * MIB)
    assert 512 <= plan_memory(LAPTOP, MODEL, tight).context_length < 8192


@pytest.mark.parametrize(
    ("settings", "error", "numbers"),
    [
        ({"block_size": 24}, BadRequest, ("24", "16")),
        ({"block_size": 8}, BadRequest, ("8", "16")),
        ({"block_size": 256}, BadRequest, ("256", "128")),
        ({"kv_pool_bytes": 30 * GIB}, ModelTooLarge, ("32.21 GB", "20.33 GB")),
        ({"kv_pool_bytes": 4 * MIB}, ModelTooLarge, ("kv_pool_bytes is set to 4.2 MB", "512 tokens")),
        (
            {"kv_pool_bytes": 64 * MIB, "context_length": 4096},
            ModelTooLarge,
            ("kv_pool_bytes is set to 67.1 MB", "4,096"),
        ),
        ({"max_num_seqs": 500}, BadRequest, ("512", "516")),
        ({"max_num_seqs": 0}, BadRequest, ("0", "1")),
        ({"memory_utilization": 1.5}, BadRequest, ("1.5", "1.0")),
        ({"target_step_s": float("nan")}, BadRequest, ("nan",)),
        ({"speculation": "on"}, BadRequest, ("'on'", "auto, off")),
    ],
)
def test_impossible_settings_are_refused_with_numbers(
    settings: dict[str, float], error: type[Exception], numbers: tuple[str, ...]
) -> None:
    with pytest.raises(error) as raised:
        plan_memory(LAPTOP, MODEL, replace(DEFAULT, **settings))
    assert all(number in str(raised.value) for number in numbers), raised.value


def test_two_kinds_share_the_pool_in_the_proportion_chats_need() -> None:
    kinds = (KindFacts("full", (0, 2), 16 * KIB), KindFacts("window", (1, 3), 48 * KIB, window=1024))
    plan = plan_memory(LAPTOP, replace(MODEL, kinds=kinds), replace(DEFAULT, num_chats=4))
    full, window = (n - 1 for n in plan.num_blocks)
    assert full == 4 * 8192 // 16
    assert window == 4 * ((1024 + 512 - 2 + 15) // 16 + 1)  # what a window and the largest step can touch
    assert plan.kv_bytes == sum(n * kind.bytes_per_block for n, kind in zip(plan.num_blocks, plan.kinds))


def test_short_chats_find_windows_enough() -> None:
    """What windowed layers keep does not grow with the chat, so short chats must not run out of it."""
    kinds = (KindFacts("full", (0, 2), 16 * KIB), KindFacts("window", (1, 3), 48 * KIB, window=1024))
    model = replace(MODEL, kinds=kinds, context_length=131_072)
    plan = plan_memory(LAPTOP, model, DEFAULT)
    full, window = (n - 1 for n in plan.num_blocks)
    assert full * 16 < 8 * 131_072 and plan.context_length == 131_072
    assert window == 8 * ((1024 + 512 - 2 + 15) // 16 + 1)
    assert sum(n * kind.bytes_per_block for n, kind in zip(plan.num_blocks, plan.kinds)) == plan.kv_bytes
    tight = plan_memory(MemoryFacts(24 * GIB, 7 * GIB + 300 * MIB, True), model, DEFAULT)
    assert 100_000 < tight.context_length < 131_072  # the windows of all who are wanted come first
    assert tight.num_blocks[0] - 1 >= tight.context_length // 16 and tight.num_blocks[1] - 1 == 8 * 97


@pytest.mark.parametrize(("chats", "fit"), [(1, 1), (2, 2), (8, 3)])
def test_as_many_chats_find_windows_as_find_room_at_usual_length(chats: int, fit: int) -> None:
    """Long conversations must not leave the windows of one: here a chat of 8,192 tokens takes 201 MiB."""
    kinds = (KindFacts("full", (0, 2), 16 * KIB), KindFacts("window", (1, 3), 48 * KIB, window=1024))
    model = replace(MODEL, kinds=kinds, context_length=131_072)
    pool = replace(DEFAULT, kv_pool_bytes=700 * MIB, num_chats=chats)
    plan = plan_memory(LAPTOP, model, pool)
    full, window = (n - 1 for n in plan.num_blocks)
    assert window == fit * 97 and full * 16 >= max(fit * 8192, plan.context_length)
    one = plan_memory(LAPTOP, model, replace(pool, num_chats=1)).context_length
    assert one - plan.context_length == (fit - 1) * 97 * 48  # tokens, for what the windows take
    assert plan_memory(LAPTOP, model, replace(pool, context_length=one)).context_length == one


def test_any_machine_gets_a_sound_plan_or_a_refusal() -> None:
    rng = Random(0)
    planned = 0
    for _ in range(2000):
        available = int(2 ** rng.uniform(28, 36))
        facts = MemoryFacts(int(available * rng.uniform(1, 3)), available, rng.random() < 0.5)
        kinds = tuple(
            KindFacts(str(n), (n,), rng.choice((4, 24, 112)) * KIB, rng.choice((0, 512, 4096)))
            for n in range(rng.randint(1, 2))
        )
        model = replace(
            MODEL,
            kinds=kinds,
            weights_bytes=int(2 ** rng.uniform(26, 34)),
            context_length=rng.choice((512, 8192, 131072)),
        )
        config = EngineConfig(
            num_chats=rng.randint(1, 20),
            kv_pool_bytes=rng.choice((None, None, int(2 ** rng.uniform(22, 36)))),
        )
        try:
            plan = plan_memory(facts, model, config)
        except ModelTooLarge:
            continue
        planned += 1
        used = plan.kv_bytes + plan.weights_bytes + plan.activation_bytes
        kept = min(4 * GIB, facts.total // 4) if facts.unified and config.kv_pool_bytes is None else 0
        assert used + kept <= facts.available
        assert 512 <= plan.context_length <= model.context_length and len(plan.reasons) == 3
        for kind, n in zip(plan.kinds, plan.num_blocks):
            assert kind.window or (n - 1) * plan.block_size >= plan.context_length
    assert planned > 500


def card(name: str, total: int, held: int, capability: tuple[int, int] = (0, 0), kind: str = "cuda") -> Card:
    """`held`: what other programs have of it."""
    return Card(kind, name, total * GIB, (total - held) * GIB, capability)


def computer(total: int, held: int, *cards: Card, container: tuple[int, int] | None = None) -> Machine:
    return Machine("a processor", 8, total * GIB, (total - held) * GIB, container, cards)


APPLE = Card("mps", "Apple M2", 10 * GIB + 768 * MIB, 10 * GIB + 768 * MIB, unified=True)
# In MiB: the model's weights take 1024, its buffers 64; a block of 64 tokens takes 2, one of 16 tokens 1/2;
# a chat of 8,192 tokens takes 256. So for the first: 4096 free x 0.9 = 3686.4, less 1088: 1299 blocks.
FAKES = [
    # machine, memory free for models, block size, blocks with padding, chats of 8,192 tokens
    (computer(16, 6, card("GTX 1660", 6, 2, (7, 5))), 4 * GIB, 64, 1299, 10.1),
    (computer(16, 6, card("RTX 3070", 8, 3, (8, 6))), 5 * GIB, 64, 1760, 13.7),  # 4608 - 1088 = 3520
    (computer(32, 9, card("RTX 4070", 12, 1, (8, 9))), 11 * GIB, 64, 4524, 35.3),  # 10137.6 - 1088 = 9049.6
    (computer(64, 9, card("H100 slice", 24, 4, (9, 0))), 20 * GIB, 64, 8672, 67.7),  # 18432 - 1088 = 17344
    # half of 10240 - 1088 is 4576; 2752, a quarter of the total, stay free in any case: 8 chats take 2048 + 2
    (computer(16, 6, APPLE), 10 * GIB, 64, 1025, 8),
    (computer(16, 13, APPLE), 3 * GIB, 64, 0, 0),  # 3072 - 1088 less 2752 that stay free: nothing is left
    # half of 3072 - 1088 would be 992, but 1024 of its 4096 stay free: 960
    (computer(24, 2, container=(4 * GIB, 1 * GIB)), 3 * GIB, 16, 1920, 3.7),
    (computer(24, 22, container=(4 * GIB, 0)), 2 * GIB, 16, 0, 0),  # the machine itself is full: -64
]


@pytest.mark.parametrize(("machine", "free", "block_size", "num_blocks", "chats"), FAKES)
def test_faked_devices(machine: Machine, free: int, block_size: int, num_blocks: int, chats: float) -> None:
    device = choose_device(machine, (*CARDS, PROCESSOR))
    assert device.memory_available == free
    memory = MemoryFacts(device.memory_total, device.memory_available, device.unified)
    model = replace(MODEL, block_size=block_size)
    if not num_blocks:
        with pytest.raises(ModelTooLarge):
            plan_memory(memory, model, DEFAULT)
        return
    plan = plan_memory(memory, model, DEFAULT)
    assert plan.num_blocks == (num_blocks,) and plan.context_length == 8192
    assert f"room for {chats} chats of 8,192 tokens" in plan.reasons[2]
    assert plan.kv_bytes + plan.weights_bytes + plan.activation_bytes <= free


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (98_362_432, "98.4 MB"), (1_117_320_768, "1.12 GB")],
)
def test_sizes_in_words(size: int, words: str) -> None:
    assert in_words(size) == words
