"""Which variant of a model suits this machine, decided before any of its files is here.

The best quality that leaves room for the wanted chats at a speed one can read along with; if there is none,
the wishes are dropped one by one, and the reason says which. Sizes come from the catalogue, or from the
number of parameters and the format; speed is an estimate: a token costs one reading of the weights. Knows no
files and no hub. Bytes unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from ..config import EngineConfig
from ..errors import ModelTooLarge
from .abilities import BF16, FP8, INT8, PROCESSOR, DeviceFacts
from .memory_plan import Chat, KindFacts, MemoryFacts, MemoryPlan, ModelFacts, plan_memory

USABLE = 5.0  # tokens a second: about as fast as people read
WANTED_CONTEXT = 8192  # tokens of a chat, where the settings leave it open
SHARE = {PROCESSOR: 0.85}  # of the speed of reading that a whole step reaches; elsewhere ELSEWHERE
ELSEWHERE = 0.6


@dataclass(frozen=True, slots=True)
class Format:
    """`quality` is a rank: 1 is the model as it was made. Bits of a weight, scales included."""

    quality: int
    bits: float  # inside the layers
    outside: float = 16  # of the embeddings
    needs: str = ""  # an ability without which it takes other kernels


# Ranks by bits, and among equals as published comparisons have it: the table of quantized editions in the
# README of Qwen2.5-Coder's evaluation, and llama.cpp's perplexities. GGUF's bits are those of its files of
# Llama 3.1 8B and 3.2 1B, within 3%; the others follow from groups of 128 weights.
FORMATS = {
    "bf16": Format(1, 16, needs=BF16),
    "MXFP4": Format(1, 4.25),  # for models that were made in it
    "GGUF Q8_0": Format(2, 8.5, 8.5),
    "GPTQ-Int8": Format(3, 8.16),
    "INT8": Format(3, 8, needs=INT8),
    "FP8": Format(4, 8, needs=FP8),
    "GGUF Q6_K": Format(5, 6.56, 6.56),
    "GGUF Q5_K_M": Format(6, 5.65, 6.56),
    "AWQ": Format(7, 4.16),
    "GGUF Q4_K_M": Format(8, 4.8, 6.56),
    "GPTQ-Int4": Format(9, 4.16),
    "GGUF Q4_K_S": Format(10, 4.55, 6.56),
    "GGUF Q4_1": Format(11, 5, 6.56),
    "GGUF Q4_0": Format(12, 4.5, 6.56),
}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What is known of a model without its files."""

    name: str
    context_length: int
    parameters: int
    active: int  # parameters that one token passes through; all but in a mixture of experts
    embeddings: int  # of the parameters, those outside the layers
    kinds: tuple[KindFacts, ...]  # (): not known, and with them the context that fits
    unserved: str = ""  # its architecture, where the engine refuses it

    def bytes_in(self, format: str) -> int:
        """About how large it is in a format."""
        facts = FORMATS[format]
        inside = self.parameters - self.embeddings
        return int(inside * facts.bits + self.embeddings * facts.outside) // 8


@dataclass(frozen=True, slots=True)
class Fit:
    """One variant on this machine. `chats` of `chat_length` tokens; `note` says what keeps it from more."""

    format: str
    bytes: int
    about: bool  # the bytes are computed
    quality: int
    tokens_per_s: float  # of one chat, estimated
    fits: bool
    context_length: int  # of one chat; 0: not known
    chats: float
    chat_length: int
    note: str

    @property
    def usable(self) -> bool:
        """It fits, and one can read along."""
        return self.fits and self.tokens_per_s >= USABLE


@dataclass(frozen=True, slots=True)
class Choice:
    """The format of the variant to take, None if none fits, and why; all variants, the best quality first."""

    variant: str | None
    reason: str
    fits: tuple[Fit, ...]


def choose_variant(
    model: ModelShape,
    variants: Sequence[tuple[str, int]],
    device: DeviceFacts,
    read_speed: float,
    config: EngineConfig = EngineConfig(),
) -> Choice:
    """Choose among (format, bytes or 0 if not looked up). `read_speed`: bytes a second from the memory."""
    each = (fit_variant(model, format, size, device, read_speed, config) for format, size in variants)
    fits = tuple(sorted(each, key=lambda fit: (fit.quality, fit.bytes)))
    if model.unserved:
        return Choice(None, not_served(model.name, model.unserved), fits)
    length, chats = fits[0].chat_length, config.num_chats
    for good, words in (
        (lambda fit: fit.usable and fit.chats >= chats, f"room for {chats} chats of {length:,} tokens"),
        (
            lambda fit: fit.usable and fit.chats >= 1,
            f"room for a chat of {length:,} tokens, if not for {chats}",
        ),
        (lambda fit: fit.usable, "room for a chat, if not for a long one"),
    ):
        if taken := next(filter(good, fits), None):
            return Choice(taken.format, _reason(taken, words), fits)
    if taken := max((fit for fit in fits if fit.fits), key=lambda fit: fit.tokens_per_s, default=None):
        slow = (
            f"{taken.format} is the quickest that fits: about {taken.tokens_per_s:.1f} tokens/s, slower than "
            f"one reads ({USABLE:g})."
        )
        return Choice(taken.format, slow, fits)
    least = min(fits, key=lambda fit: fit.bytes)
    return Choice(None, f"No variant fits. {least.note}", fits)


def not_served(name: str, architecture: str) -> str:
    """The sentence for a model that no machine makes answer."""
    return f"{name} can't be used: its architecture, {architecture}, is not served."


def _reason(taken: Fit, words: str) -> str:
    speed = f"at about {taken.tokens_per_s:,.0f} tokens/s"
    if not taken.context_length:
        known = "how long its chats can be is known once it is downloaded"
        return f"{taken.format} has the best quality that fits, {speed}; {known}."
    return f"{taken.format} has the best quality that leaves {words}, {speed}."


def fit_variant(
    model: ModelShape, format: str, size: int, device: DeviceFacts, read_speed: float, config: EngineConfig
) -> Fit:
    """How one variant would do."""
    facts, known = FORMATS[format], size
    size = known or model.bytes_in(format)
    speed = read_speed * SHARE.get(device.kind, ELSEWHERE) / (size * model.active / model.parameters)
    length = min(config.context_length or WANTED_CONTEXT, model.context_length)
    if config.context_length:  # set for another model, perhaps
        config = replace(config, context_length=length)
    fits, context_length, chats, note = True, 0, 0.0, ""
    if facts.needs not in ("", *device.abilities) and device.kind != PROCESSOR:
        note = f"{device.name} has no {facts.needs}: it takes other kernels, which may be slower."
    try:
        plan = _plan(model, size, device, config)
        if model.kinds:
            context_length, chats = plan.context_length, _chats(plan, length)
    except ModelTooLarge as error:
        fits, note = False, str(error)
    if model.unserved:
        fits, context_length, chats, note = False, 0, 0.0, not_served(model.name, model.unserved)
    return Fit(format, size, not known, facts.quality, speed, fits, context_length, chats, length, note)


def _plan(model: ModelShape, size: int, device: DeviceFacts, config: EngineConfig) -> MemoryPlan:
    """The plan of a model that is not here. What a step needs is guessed from the size of a layer: dense ones
    take 3.2 to 3.4 times the root of their parameters, in numbers of 4 bytes a token.
    """
    num_layers = sum(len(kind.layers) for kind in model.kinds) or 32
    layer = max(0, model.active - model.embeddings) // num_layers
    facts = ModelFacts(
        name=model.name,
        fingerprint="",
        context_length=model.context_length,
        kinds=model.kinds or (KindFacts("full", (0,), 1),),
        weights_bytes=size,
        activation_bytes_per_token=14 * isqrt(layer),
        logits_bytes_per_seq=2**20,  # a vocabulary of 262,144
        block_size=16 if device.kind == PROCESSOR else 64,
    )
    memory = MemoryFacts(device.memory_total, device.memory_available, device.unified)
    return plan_memory(memory, facts, config)


def _chats(plan: MemoryPlan, length: int) -> float:
    """How many conversations of that length the pool holds."""
    blocks = Chat(plan.kinds, plan.block_size, plan.max_step_tokens).blocks(length)
    return min((have - 1) / need for have, need in zip(plan.num_blocks, blocks))
