"""Which variant of a model suits this machine, decided before any of its files is here.

The best quality that leaves room for the wanted chats at a speed one can read along with; if there is none,
the wishes are dropped one by one, and the reason says which. Sizes come from the catalogue, or from the
number of parameters and the format; what memory holds follows from the device, which may keep a format in
other bits than files do; speed is an estimate: a token costs one reading of the weights it passes through.
Knows no files and no hub. Bytes unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from ..config import MADE_ELSEWHERE, EngineConfig
from ..errors import ModelTooLarge, UnsupportedModel
from .abilities import BF16, FP8, INT8, PROCESSOR, DeviceFacts
from .borrowed import BORROWED as BORROWED_TYPES, WANTED
from .memory_plan import USUAL_CONTEXT, Chat, KindFacts, MemoryFacts, MemoryPlan, ModelFacts
from .precision import Fit as Loaded, fit as load

USABLE = 5.0  # tokens a second: about as fast as people read
SHARE = {PROCESSOR: 0.85}  # of the speed of reading that a whole step reaches; elsewhere ELSEWHERE
ELSEWHERE = 0.6
PLAIN_TORCH = 0.25  # the same of transformers' code


Bits = tuple[float, float]  # of a weight inside the layers, and of one outside; scales included


@dataclass(frozen=True, slots=True)
class Format:
    """`quality` is a rank: 1 is the model as it was made. In memory as in files, where nothing is said."""

    quality: int
    file: Bits
    processor: Bits = (0, 0)  # in its memory
    card: Bits = (0, 0)
    needs: str = ""  # an ability without which it takes other kernels


# Ranks by bits, and among equals as published comparisons have it: the table of quantized editions in the
# README of Qwen2.5-Coder's evaluation, and llama.cpp's perplexities. GGUF's bits are those of its files of
# Llama 3.1 8B and 3.2 1B, within 3%; the others follow from groups of 128 weights. What becomes of them in
# memory follows from formats/costs.py; of Q4_K_M a seventh is Q6_K.
FORMATS = {
    "bf16": Format(1, (16, 16), needs=BF16),
    "MXFP4": Format(1, (4.25, 16), (4.5, 8.5), (8.5, 16)),  # for models that were made in it
    "GGUF Q8_0": Format(2, (8.5, 8.5)),
    "GPTQ-Int8": Format(3, (8.16, 16), (8.5, 8.5)),
    "INT8": Format(3, (8, 16), (8.5, 8.5), needs=INT8),
    "FP8": Format(4, (8, 16), (8.5, 8.5), needs=FP8),
    "GGUF Q6_K": Format(5, (6.56, 6.56), card=(9, 9)),
    "GGUF Q5_K_M": Format(6, (5.65, 6.56), (5.75, 6.56), (9.85, 9)),
    "AWQ": Format(7, (4.16, 16), (5, 8.5)),
    "GGUF Q4_K_M": Format(8, (4.8, 6.56), (4.9, 6.56), (5.25, 9)),
    "GPTQ-Int4": Format(9, (4.16, 16), (5, 8.5)),
    "GGUF Q4_K_S": Format(10, (4.55, 6.56), (4.65, 6.56), (4.75, 9)),
    "GGUF Q4_1": Format(11, (5, 6.56), card=(5, 9)),
    "GGUF Q4_0": Format(12, (4.5, 6.56), (5, 6.56), (4.5, 9)),
}
# What bf16 becomes when it is loaded (precision.py); on a processor none is int8 as well.
MADE = {
    "none": Format(2, (16, 16), (8.5, 8.5)),
    "int8": Format(2, (16, 16), (8.5, 8.5), (8.5, 16)),
    "fp8": Format(4, (16, 16), (8.5, 8.5), (8, 16)),
    "int4": Format(13, (16, 16), (5, 8.5), (5, 16)),
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
    borrowed: bool = False  # transformers' code computes it, with its weights as they are
    weights_bytes: int = 0  # in memory, where its files were looked at
    rows: int = 0  # of the embeddings, those in tables of which a token reads a row

    def bytes_in(self, format: str) -> int:
        """About how large its files are in a format."""
        return int(self._in(FORMATS[format].file))

    def held(self, format: Format, kind: str, size: int) -> tuple[int, float]:
        """About how many bytes it takes on a device whose files take `size`, and how many a token reads."""
        bits = format.file
        if not self.borrowed:
            bits = next(filter(any, (format.processor if kind == PROCESSOR else format.card, bits)))
        known = self.weights_bytes or size * self._in(bits) / self._in(format.file)
        return int(known), known * (self._in(bits, self.active) - self.rows * bits[1] / 8) / self._in(bits)

    def _in(self, bits: Bits, parameters: int = 0) -> float:
        inside = max(0, (parameters or self.parameters) - self.embeddings)
        return (inside * bits[0] + self.embeddings * bits[1]) / 8


@dataclass(frozen=True, slots=True)
class Fit:
    """One variant on this machine. `chats` of `chat_length` tokens; `note` says what keeps it from more."""

    format: str
    bytes: int
    about: bool  # the bytes are computed
    memory_bytes: int  # of its weights, once loaded
    quality: int
    tokens_per_s: float  # of one chat, estimated
    fits: bool
    context_length: int  # of one chat; 0: not known
    chats: float
    chat_length: int
    note: str
    ruled_out: bool = False  # by the settings, not by the memory

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
    least = min(fits, key=lambda fit: (fit.ruled_out, fit.memory_bytes))
    return Choice(None, f"No variant fits. {least.note}", fits)


def not_served(name: str, architecture: str) -> str:
    """The sentence for a model that no machine makes answer."""
    if architecture in BORROWED_TYPES:
        return (
            f"{name} can't be used yet: its architecture, {architecture}, is computed by transformers, which "
            f"is not installed: pip install '{WANTED}'."
        )
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
    about, size = not size, size or model.bytes_in(format)
    length = min(config.context_length or USUAL_CONTEXT, model.context_length)
    if config.context_length:  # set for another model, perhaps
        config = replace(config, context_length=length)
    fits, ruled_out, context_length, chats, note = True, False, 0, 0.0, ""
    facts, made = FORMATS[format], "none"
    try:
        _check_wanted(format, config.quantization)
        made, _, plan = _load(model, format, size, device, config)
        if model.kinds:
            context_length, chats = plan.context_length, _chats(plan, length)
    except (ModelTooLarge, UnsupportedModel) as error:
        fits, ruled_out, note = False, isinstance(error, UnsupportedModel), str(error)
    if format == "bf16" and not model.borrowed and (made != "none" or device.kind == PROCESSOR):
        facts = MADE[made]
    note = note or _note(model, facts, made, device)
    if model.unserved:
        fits, context_length, chats, note = False, 0, 0.0, not_served(model.name, model.unserved)
    memory_bytes, read = model.held(facts, device.kind, size)
    share = PLAIN_TORCH if model.borrowed else SHARE.get(device.kind, ELSEWHERE)
    speed = read_speed * share / read
    rank, room = facts.quality, (context_length, chats, length)
    return Fit(format, size, about, memory_bytes, rank, speed, fits, *room, note, ruled_out)


def _note(model: ModelShape, facts: Format, made: str, device: DeviceFacts) -> str:
    """What keeps a variant that fits from more."""
    if model.borrowed:
        return "Transformers' own code computes it, slower than other models."
    if made != "none":
        return f"Its weights are made {made} when they are loaded."
    if facts.needs in ("", *device.abilities) or device.kind == PROCESSOR:
        return ""
    return f"{device.name} has no {facts.needs}: it takes other kernels, which may be slower."


def _check_wanted(format: str, wanted: str) -> None:
    """As loading does: awq and gptq must be what the files are."""
    if wanted in MADE_ELSEWHERE and not format.lower().startswith(wanted):
        raise UnsupportedModel(f"quantization is {wanted}, as set, and {format} is not; choose auto.")


def _load(model: ModelShape, format: str, size: int, device: DeviceFacts, config: EngineConfig) -> Loaded:
    """In which precision a model that is not here would be loaded, and the plan. What a step needs is guessed
    from the size of a layer: dense ones take 3.2 to 3.4 times the root of their parameters, in numbers of 4
    bytes a token.
    """
    num_layers = sum(len(kind.layers) for kind in model.kinds) or 32
    layer = max(0, model.active - model.embeddings) // num_layers
    is_open = format == "bf16" and not model.borrowed

    def facts(precision: str) -> ModelFacts:
        as_loaded = MADE[precision] if is_open else FORMATS[format]
        return ModelFacts(
            name=model.name,
            fingerprint="",
            context_length=model.context_length,
            kinds=model.kinds or (KindFacts("full", (0,), 1),),
            weights_bytes=model.held(as_loaded, device.kind, size)[0],
            activation_bytes_per_token=14 * isqrt(layer),
            logits_bytes_per_seq=2**20,  # a vocabulary of 262,144
            block_size=16 if device.kind == PROCESSOR else 64,
        )

    memory = MemoryFacts(device.memory_total, device.memory_available, device.unified)
    return load(memory, config, facts, is_open)


def _chats(plan: MemoryPlan, length: int) -> float:
    """How many conversations of that length the pool holds."""
    blocks = Chat(plan.kinds, plan.block_size, plan.max_step_tokens).blocks(length)
    return min((have - 1) / need for have, need in zip(plan.num_blocks, blocks))
