"""In which precision unquantized weights are loaded: as they are if that leaves room, else the best."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import LLM, EngineConfig, Finish, FinishReason, Message, Request, SamplingParams
from engine.errors import ModelTooLarge, UnsupportedModel
from engine.fitting.device import detect
from engine.fitting.memory_plan import GIB, KindFacts, MemoryFacts, ModelFacts
from engine.fitting.precision import Facts, fit
from tests.tiny_models import write_tiny_gguf

BYTES = {"none": 16 * GIB, "int8": 9 * GIB, "int4": 5 * GIB, "fp8": 8 * GIB}


def eight_billion(bytes_in: dict[str, int] = BYTES) -> Facts:
    """A model of 16 GiB, 128 KiB of context a token."""
    model = ModelFacts(
        name="8B",
        fingerprint="f",
        context_length=32_768,
        kinds=(KindFacts("full", tuple(range(32)), 128 * 2**10),),
        weights_bytes=0,
        activation_bytes_per_token=64 * 2**10,
        logits_bytes_per_seq=2**19,
        block_size=16,
    )
    return lambda precision: replace(model, weights_bytes=bytes_in[precision])


def machine(available: int) -> MemoryFacts:
    return MemoryFacts(total=64 * GIB, available=available * GIB, unified=True)


@pytest.mark.parametrize(
    ("available", "precision"), [(40, "none"), (23, "none"), (20, "int8"), (16, "int8"), (13, "int4")]
)
def test_the_best_that_leaves_room_for_a_chat(available: int, precision: str) -> None:
    found, model, plan = fit(machine(available), EngineConfig(), eight_billion(), True)
    assert found == precision and model.weights_bytes == plan.weights_bytes == BYTES[precision]
    made = [reason for reason in plan.reasons if "are made" in reason]
    assert bool(made) == (precision != "none")
    assert not made or f"take 17.18 GB of {available * GIB / 1e9:.2f} GB free" in made[0]


def test_where_nothing_leaves_enough_the_longest_context_is_taken() -> None:
    found, _, plan = fit(machine(10), EngineConfig(), eight_billion(), True)
    assert found == "int4" and 512 <= plan.context_length < 8192


def test_what_fits_in_no_precision_is_refused_with_the_numbers_of_the_smallest() -> None:
    with pytest.raises(ModelTooLarge, match=r"needs 5\.37 GB for its weights"):
        fit(machine(6), EngineConfig(), eight_billion(), True)


def test_a_chosen_precision_counts_whether_it_is_the_best_or_not() -> None:
    found, _, plan = fit(machine(40), EngineConfig(quantization="fp8"), eight_billion(), True)
    assert found == "fp8" and plan.weights_bytes == BYTES["fp8"]


def test_weights_that_are_quantized_already_are_loaded_as_they_are_or_refused() -> None:
    quantized = eight_billion(dict.fromkeys(BYTES, 5 * GIB))
    assert fit(machine(12), EngineConfig(), quantized, False)[0] == "none"
    assert fit(machine(40), EngineConfig(quantization="awq"), quantized, False)[0] == "none"
    with pytest.raises(UnsupportedModel, match="8B is quantized already, so it can't be made int8"):
        fit(machine(40), EngineConfig(quantization="int8"), quantized, False)


def test_a_model_that_only_fits_quantized_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantization="BF16").path
    config = EngineConfig(num_chats=1, max_num_seqs=2, max_step_tokens=64, threads=1, kv_pool_bytes=2**20)
    plain = LLM.load(path, config)
    unquantized = plain.plan
    plain.close()
    short = unquantized.weights_bytes + unquantized.activation_bytes + 2**20 - 1
    facts = replace(detect(), memory_available=short)
    monkeypatch.setattr("engine.fitting.placement.detect", lambda *given, **more: facts)
    llm = LLM.load(path, config)
    try:
        assert llm.plan.weights_bytes < unquantized.weights_bytes
        assert "are made int4" in llm.plan.reasons[0]  # the processor keeps unquantized ones as int8 anyway
        asked = Request((Message("user", "x"),), SamplingParams(max_tokens=4, temperature=0, ignore_eos=True))
        *_, finish = llm.submit(asked)
        assert isinstance(finish, Finish) and finish.reason is FinishReason.LENGTH
    finally:
        llm.close()
