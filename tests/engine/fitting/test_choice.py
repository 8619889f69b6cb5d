"""Which variant is taken on faked devices: with room, without, too slow, of unknown shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.models.catalogue import read_catalogue
from engine.config import EngineConfig
from engine.fitting.abilities import FP8, DeviceFacts
from engine.fitting.choice import FORMATS, MADE, USABLE, Choice, Fit, ModelShape, choose_variant
from engine.fitting.memory_plan import KindFacts
from engine.formats.costs import CARD_BITS, MEMORY_BITS
from kernels import Dense, Fp8, Int4, Int4T, Int4Z, Int6, Int8

GIB = 2**30
# Llama 3.1 8B: 32 layers, 8 heads of 128 for keys and values; 128 KiB a token
LLAMA = ModelShape(
    "Llama 3.1 8B",
    131_072,
    8_030_261_248,
    8_030_261_248,
    1_050_673_152,
    (KindFacts("full", tuple(range(32)), 4 * 32 * 8 * 128),),
)
VARIANTS = [(name, 0) for name in ("bf16", "FP8", "AWQ", "GGUF Q8_0", "GGUF Q6_K", "GGUF Q4_K_M")]
CARD = DeviceFacts("RTX 4090", "cuda", 24 * GIB, 22 * GIB, 8, False, "", (FP8, "bf16"))
CARD_SPEED = 1e12
LAPTOP = DeviceFacts("a processor", "cpu", 32 * GIB, 26 * GIB, 8, True, "")


def choose(device: DeviceFacts, speed: float = CARD_SPEED, **settings: int) -> Choice:
    return choose_variant(LLAMA, VARIANTS, device, speed, EngineConfig(**settings))


def fit(choice: Choice, format: str) -> Fit:
    return next(fit for fit in choice.fits if fit.format == format)


def with_free(free: float) -> DeviceFacts:
    return replace(CARD, memory_available=int(free * GIB))


@pytest.mark.parametrize(
    ("format", "known"),  # files of the same model as their publishers have them
    [
        ("bf16", 16.06e9),
        ("GGUF Q8_0", 8.54e9),
        ("GGUF Q6_K", 6.6e9),
        ("GGUF Q5_K_M", 5.73e9),
        ("GGUF Q4_K_M", 4.92e9),
    ],
)
def test_sizes_that_were_not_looked_up_are_near_the_true_ones(format: str, known: float) -> None:
    assert LLAMA.bytes_in(format) == pytest.approx(known, rel=0.03)


def test_the_best_quality_that_leaves_room_for_all_chats() -> None:
    choice = choose(with_free(44))
    assert choice.variant == "bf16" and fit(choice, "bf16").chats >= 8
    choice = choose(with_free(20))
    assert choice.variant == "GGUF Q8_0" and fit(choice, "bf16").chats < 8 <= fit(choice, "GGUF Q8_0").chats
    assert choice.reason == (
        "GGUF Q8_0 has the best quality that leaves room for 8 chats of 8,192 tokens, at about 70 tokens/s."
    )
    assert [fit.quality for fit in choice.fits] == sorted(fit.quality for fit in choice.fits)


def test_the_number_of_chats_is_given_up_before_the_length_of_one() -> None:
    choice = choose(with_free(8))  # 7.7 GB to use: 5.7 and 5 GB leave a chat or two
    assert choice.variant == "AWQ" and 1 <= fit(choice, "AWQ").chats < 8
    assert "room for a chat of 8,192 tokens, if not for 8" in choice.reason
    assert not fit(choice, "GGUF Q8_0").fits
    short = choose(with_free(6.2))
    assert short.variant and fit(short, short.variant).chats < 1
    assert "room for a chat, if not for a long one" in short.reason


def test_fewer_chats_or_a_shorter_context_buy_quality() -> None:
    assert choose(with_free(20), num_chats=1).variant == "bf16"
    assert choose(with_free(15), context_length=4096).variant == "GGUF Q8_0"
    assert choose(with_free(15)).variant == "AWQ"


def test_a_context_set_for_a_longer_model_is_cut_to_this_one_s() -> None:
    short = replace(LLAMA, context_length=4096)
    choice = choose_variant(short, VARIANTS, CARD, CARD_SPEED, EngineConfig(context_length=100_000))
    assert all(fit.chat_length == fit.context_length == 4096 for fit in choice.fits if fit.fits)


def test_what_nobody_would_wait_for_is_not_taken() -> None:
    choice = choose(LAPTOP, 50e9, num_chats=1)
    assert choice.variant == "GGUF Q6_K"  # 8.5 GB at 42.5 GB/s make 4.98 tokens a second
    assert fit(choice, "GGUF Q8_0").tokens_per_s < USABLE <= fit(choice, "GGUF Q6_K").tokens_per_s
    slow = choose(LAPTOP, 5e9)
    assert slow.variant == "GGUF Q4_K_M" and "slower than one reads" in slow.reason


def test_none_fits() -> None:
    choice = choose(with_free(3))
    assert choice.variant is None and not any(fit.fits for fit in choice.fits)
    assert choice.reason.startswith("No variant fits. Llama 3.1 8B needs 5.73 GB for its weights")


def test_nobody_is_told_to_close_programs_where_that_can_t_help() -> None:
    assert choose(with_free(3)).reason.endswith("Close other programs, or choose a smaller model.")
    small = replace(LAPTOP, memory_total=4 * GIB, memory_available=3 * GIB)
    assert choose(small).reason.endswith("can be used now. Choose a smaller model.")
    assert choose(small, context_length=4096).reason.endswith("Choose a smaller model or a shorter context.")


def test_an_architecture_that_is_refused_is_never_chosen() -> None:
    choice = choose_variant(replace(LLAMA, unserved="mamba9"), VARIANTS, CARD, CARD_SPEED)
    assert choice.variant is None and not any(fit.fits for fit in choice.fits)
    assert choice.reason == "Llama 3.1 8B can't be used: its architecture, mamba9, is not served."


def test_a_mixture_of_experts_reads_only_what_is_active() -> None:
    mixture = replace(LLAMA, active=LLAMA.parameters // 8)
    dense, sparse = (choose_variant(each, VARIANTS, CARD, 1e12).fits[0] for each in (LLAMA, mixture))
    assert sparse.bytes == dense.bytes and sparse.tokens_per_s == pytest.approx(8 * dense.tokens_per_s, 0.05)


@pytest.mark.parametrize(
    ("model", "format", "gb"),  # by hand, from the layers' widths on the pages that models.toml names
    [
        # 48 layers: attention 18.9 M and 8 of 128 experts, 37.7 M; the output head 311 M
        ("qwen3-30b-a3b", "GGUF Q4_K_M", 1.92),
        # 24 layers: attention 26.5 M in 8.5 bits, 4 of 32 experts 99.5 M in 4.5; the output head 579 M
        ("gpt-oss-20b", "MXFP4", 2.63),
        # 80 layers of 856 M; the output head 1,051 M
        ("llama-3.3-70b", "GGUF Q4_K_M", 42.8),
    ],
)
def test_what_a_token_reads_of_large_models(model: str, format: str, gb: float) -> None:
    shape = read_catalogue()[model].facts()
    (only,) = choose_variant(shape, [(format, 0)], LAPTOP, 1e9 / 0.85).fits
    assert 1 / only.tokens_per_s == pytest.approx(gb, rel=0.15)


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        *(("bf16", Dense), ("MXFP4", Int4T), ("GGUF Q8_0", Int8), ("GPTQ-Int8", Int8), ("INT8", Int8)),
        *(("FP8", Fp8), ("GGUF Q6_K", Int6), ("AWQ", Int4Z), ("GPTQ-Int4", Int4Z), ("GGUF Q4_0", Int4)),
    ],
)
def test_memory_is_what_loading_takes(format: str, kind: type) -> None:
    """On a processor all, on a card what has a scale per 32: others keep the file's groups."""
    bits = FORMATS[format].processor[0] or FORMATS[format].file[0]
    assert (bits if format != "bf16" else MADE["none"].processor[0]) == pytest.approx(MEMORY_BITS[kind], 0.01)
    on_card = FORMATS[format].card[0] or FORMATS[format].file[0]
    assert 0.82 < on_card / CARD_BITS[kind] <= 1


def test_a_processor_makes_int8_of_bf16_so_the_smaller_download_is_taken() -> None:
    choice = choose(LAPTOP, 100e9, num_chats=1)
    bf16, q8 = fit(choice, "bf16"), fit(choice, "GGUF Q8_0")
    assert choice.variant == "GGUF Q8_0" and bf16.quality == q8.quality
    assert bf16.memory_bytes == pytest.approx(q8.memory_bytes) and bf16.bytes > 1.8 * q8.bytes
    assert bf16.tokens_per_s == pytest.approx(q8.tokens_per_s)


def test_what_a_card_holds_in_more_bits_than_the_file_counts() -> None:
    """An 8 GB card: Q5_K takes ten bits a weight there, so 5.7 GB of file do not fit."""
    small = replace(CARD, memory_total=8 * GIB, memory_available=int(7.4 * GIB))
    choice = choose_variant(LLAMA, [("GGUF Q5_K_M", 0), ("GGUF Q4_K_M", 0)], small, CARD_SPEED)
    assert choice.variant == "GGUF Q4_K_M" and not fit(choice, "GGUF Q5_K_M").fits
    assert fit(choice, "GGUF Q5_K_M").memory_bytes > 9e9


def test_bf16_that_does_not_fit_is_made_smaller_when_it_is_loaded() -> None:
    for free, precision, quality in ((20, "", 1), (14, "int8", 2), (8, "int4", 13)):
        choice = choose_variant(LLAMA, [("bf16", 0)], with_free(free), CARD_SPEED, EngineConfig(num_chats=1))
        (only,) = choice.fits
        assert choice.variant == "bf16" and only.quality == quality, free
        assert only.note == (f"Its weights are made {precision} when they are loaded." if precision else "")


@pytest.mark.parametrize(
    ("wanted", "ruled_out", "said"),
    [
        ("int4", {"FP8", "AWQ", "GGUF Q8_0", "GGUF Q6_K", "GGUF Q4_K_M"}, "quantized already, so it can't"),
        ("awq", {"bf16", "FP8", "GGUF Q8_0", "GGUF Q6_K", "GGUF Q4_K_M"}, "quantization is awq, as set, and"),
        ("none", set(), ""),
    ],
)
def test_what_the_settings_rule_out_is_not_taken(wanted: str, ruled_out: set[str], said: str) -> None:
    choice = choose_variant(LLAMA, VARIANTS, with_free(40), CARD_SPEED, EngineConfig(quantization=wanted))
    assert {each.format for each in choice.fits if each.ruled_out} == ruled_out
    assert all(said in each.note for each in choice.fits if each.ruled_out)
    assert choice.variant not in ruled_out


def test_what_transformers_computes_is_slower_and_stays_as_it_is() -> None:
    (ours,), (theirs,) = (
        choose_variant(replace(LLAMA, borrowed=borrowed), [("bf16", 0)], LAPTOP, 50e9).fits
        for borrowed in (False, True)
    )
    assert theirs.memory_bytes == theirs.bytes > 1.8 * ours.memory_bytes and theirs.quality == 1
    assert theirs.tokens_per_s < ours.tokens_per_s / 4 and theirs.note.startswith("Transformers' own code")


def test_without_transformers_the_sentence_says_how_to_get_it() -> None:
    choice = choose_variant(replace(LLAMA, unserved="cohere", borrowed=True), [("bf16", 0)], LAPTOP, 50e9)
    assert choice.variant is None and "pip install 'transformers>=" in choice.reason


def test_an_unknown_shape_is_judged_by_its_weights() -> None:
    unknown = replace(LLAMA, kinds=(), embeddings=0)
    choice = choose_variant(unknown, VARIANTS, CARD, CARD_SPEED)
    taken = fit(choice, "bf16")
    assert choice.variant == "bf16" and taken.fits and taken.context_length == 0
    assert "known once it is downloaded" in choice.reason


def test_bytes_that_were_looked_up_count() -> None:
    (only,) = choose_variant(LLAMA, [("AWQ", 12345)], CARD, CARD_SPEED).fits
    assert only.bytes == 12345 and not only.about


def test_a_card_without_the_format_s_units_says_so() -> None:
    choice = choose(replace(CARD, name="RTX 3090", abilities=("bf16",)))
    assert (
        fit(choice, "FP8").note == "RTX 3090 has no FP8 units: it takes other kernels, which may be slower."
    )
    assert not fit(choose(CARD), "FP8").note and not fit(choose(LAPTOP), "FP8").note


def test_every_format_has_a_rank() -> None:
    assert min(format.quality for format in FORMATS.values()) == 1
    assert all(3 < bits <= 16 for format in FORMATS.values() for bits in format.file)
