"""In which precision an unquantized checkpoint is loaded, where the person leaves it open: the best that
leaves room for a chat of some length.

Pure: what each would take is asked of the caller. A checkpoint that is quantized already is loaded as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..config import MADE_ELSEWHERE, EngineConfig
from ..errors import ModelTooLarge, UnsupportedModel
from .memory_plan import USUAL_CONTEXT, MemoryFacts, MemoryPlan, ModelFacts, in_words, plan_memory

PRECISIONS = ("none", "int8", "int4")  # best first: as they are, and what they are made into
ENOUGH = USUAL_CONTEXT  # tokens of one chat; a longer context is no reason for a lower precision

Facts = Callable[[str], ModelFacts]  # of the model in one of PRECISIONS
Fit = tuple[str, ModelFacts, MemoryPlan]


def fit(memory: MemoryFacts, config: EngineConfig, facts: Facts, unquantized: bool) -> Fit:
    """The precision to load in, and the plan for it, with its reason. `unquantized`: some weights are.

    Raises ModelTooLarge, and UnsupportedModel for a precision that is chosen where none are.
    """
    if config.quantization != "auto":
        return _chosen(memory, config, facts, unquantized)
    fits: list[Fit] = []
    too_large = None
    for precision in PRECISIONS if unquantized else PRECISIONS[:1]:
        model = facts(precision)
        try:
            fits.append((precision, model, plan := plan_memory(memory, model, config)))
        except ModelTooLarge as error:
            too_large = error
            continue
        if plan.context_length >= min(ENOUGH, config.context_length or model.context_length):
            break
    if not fits:
        assert too_large
        raise too_large
    return _with_reason(max(fits, key=lambda found: found[2].context_length), facts("none"), memory)


def plan_again(memory: MemoryFacts, config: EngineConfig, found: Fit, more: int) -> MemoryPlan:
    """The plan with so many bytes more beside weights and pool, and the same reasons before its own."""
    _, model, plan = found
    again = plan_memory(memory, replace(model, graphs_bytes=model.graphs_bytes + more), config)
    before = plan.reasons[: len(plan.reasons) - len(again.reasons)]
    return replace(again, reasons=(*before, *again.reasons))


def _chosen(memory: MemoryFacts, config: EngineConfig, facts: Facts, unquantized: bool) -> Fit:
    precision = "none" if config.quantization in MADE_ELSEWHERE else config.quantization
    model = facts(precision)
    if precision != "none" and not unquantized:
        raise UnsupportedModel(
            f"{model.name} is quantized already, so it can't be made {precision}; choose auto or none."
        )
    return precision, model, plan_memory(memory, model, config)


def _with_reason(found: Fit, unquantized: ModelFacts, memory: MemoryFacts) -> Fit:
    precision, model, plan = found
    if precision == "none":
        return found
    why = (
        f"The weights are made {precision} when they are loaded, {in_words(model.weights_bytes)}: as they "
        f"are they take {in_words(unquantized.weights_bytes)} of {in_words(memory.available)} free, "
        "which leaves too little for chats."
    )
    return precision, model, replace(plan, reasons=(why, *plan.reasons))
