"""How much memory goes to what: a pure function from measured facts and settings to a plan, with its reasons.

    available now = weights + activations + pool of blocks + what is left to other programs

Bytes unless said otherwise. `available` is measured before the weights are loaded, other programs' use and
a container's limit counted. A chat here is one conversation of the full context length. Whatever a setting
leaves open is decided here and explained in a sentence that the page shows. Allocates nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from ..config import LEAST_CONTEXT, EngineConfig
from ..errors import ModelTooLarge
from ..scheduling.block_pool import PageKind
from ..scheduling.speculation import MOST_IN_STEP

GIB = 2**30
LEFT_TO_OTHERS = 4 * GIB  # where device memory is system memory; a quarter of machines too small for that
USUAL_CONTEXT = 8192  # tokens that a chat wants, where the settings leave it open


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The memory of the device that will hold the model."""

    total: int
    available: int
    unified: bool  # it is the system's memory, which other programs need as well


@dataclass(frozen=True, slots=True)
class KindFacts:
    """A page kind before the block size is known."""

    name: str
    layers: tuple[int, ...]
    bytes_per_token: int
    window: int = 0

    def with_blocks(self, block_size: int) -> PageKind:
        """The same, in blocks of so many tokens."""
        return PageKind(self.name, self.layers, self.bytes_per_token * block_size, self.window)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What planning needs to know of a checkpoint on a backend."""

    name: str
    fingerprint: str
    context_length: int  # the longest the model was made for
    kinds: tuple[KindFacts, ...]
    weights_bytes: int
    activation_bytes_per_token: int  # of a step
    logits_bytes_per_seq: int
    block_size: int  # the backend's best
    formats: str = ""  # of the weights in memory; with kv_dtype part of what prefixes are told apart by
    kv_dtype: str = ""
    counts_bytes_per_seq: int = 0  # how often each token was said, for penalties
    graphs_bytes: int = 0
    tables_bytes: int = 0  # the vocabulary, and how far pairs turn at every place of the longest context


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The sizes a model is loaded with. `num_blocks` goes with `kinds` and counts the padding block."""

    block_size: int
    context_length: int
    kinds: tuple[PageKind, ...]
    num_blocks: tuple[int, ...]
    kv_bytes: int
    weights_bytes: int
    activation_bytes: int
    max_num_seqs: int
    max_step_tokens: int
    max_rows: int  # of logits in a step
    reasons: tuple[str, ...]


def plan_memory(facts: MemoryFacts, model: ModelFacts, config: EngineConfig) -> MemoryPlan:
    """Size everything. ModelTooLarge: not one chat fits."""
    block_size, why_block_size = choose_block_size(model, config)
    kinds = tuple(kind.with_blocks(block_size) for kind in model.kinds)
    chat = Chat(kinds, block_size, config.max_step_tokens)
    max_rows = config.max_num_seqs + (MOST_IN_STEP if config.speculation == "auto" else 0)
    activation_bytes = (
        config.max_step_tokens * model.activation_bytes_per_token
        + max_rows * model.logits_bytes_per_seq
        + config.max_num_seqs * model.counts_bytes_per_seq
        + model.graphs_bytes
        + model.tables_bytes
    )
    rest = facts.available - model.weights_bytes - activation_bytes
    most, why_most = choose_pool_limit(facts, config, rest)
    context_length, why_context = choose_context(model, config, chat, most, facts.total)
    fills = config.kv_pool_bytes or not facts.unified
    kv_bytes = most if fills else min(most, chat.bytes(context_length, config.num_chats))
    num_blocks = chat.split(context_length, kv_bytes, config.num_chats)
    num_chats = min((n - 1) / b for n, b in zip(num_blocks, chat.blocks(context_length)))
    room = f"{num_chats:.1f}".removesuffix(".0")
    why = f": {why_most}" if kv_bytes == most else ", as many as wanted."
    why_pool = f"The pool takes {in_words(kv_bytes)}, room for {room} chats of {context_length:,} tokens{why}"
    return MemoryPlan(
        block_size,
        context_length,
        kinds,
        num_blocks,
        sum(n * kind.bytes_per_block for n, kind in zip(num_blocks, kinds)),
        model.weights_bytes,
        activation_bytes,
        config.max_num_seqs,
        config.max_step_tokens,
        max_rows,
        (why_block_size, why_context, why_pool),
    )


@dataclass(frozen=True, slots=True)
class Chat:
    """What conversations of some length take of each page kind."""

    kinds: tuple[PageKind, ...]
    block_size: int
    max_step_tokens: int

    def blocks(self, context_length: int) -> tuple[int, ...]:
        """Blocks of each kind for one chat; of a windowed kind never more than window and step can touch."""
        whole = -(-context_length // self.block_size)
        return tuple(
            min(whole, kind.blocks_across(self.max_step_tokens, self.block_size)) if kind.window else whole
            for kind in self.kinds
        )

    def bytes(self, context_length: int, num_chats: int = 1, num_windows: int = 0) -> int:
        """Bytes for so many chats and the padding blocks; of windowed kinds for `num_windows`, if more."""
        blocks, windows = self.blocks(context_length), max(num_chats, num_windows)
        return sum(
            ((windows if kind.window else num_chats) * n + 1) * kind.bytes_per_block
            for n, kind in zip(blocks, self.kinds)
        )

    def split(self, context_length: int, kv_bytes: int, num_chats: int) -> tuple[int, ...]:
        """Blocks of each kind, padding included, that `kv_bytes` hold, in the proportion that chats need.

        Short chats need as much of a windowed kind as long ones, so it gets enough for all wanted chats
        first, as long as one of full length still fits.
        """
        blocks, padding = self.blocks(context_length), self.bytes(context_length, 0)
        room, one = kv_bytes - padding, self.bytes(context_length) - padding
        windows = sum(n * kind.bytes_per_block for n, kind in zip(blocks, self.kinds) if kind.window)
        whole = one - windows
        windowed = chats = Fraction(room, one)
        if windows and whole:
            windowed = max(chats, min(Fraction(num_chats), Fraction(room - whole, windows)))
            chats = (room - windowed * windows) / whole
        return tuple(1 + int(n * (windowed if kind.window else chats)) for n, kind in zip(blocks, self.kinds))


def choose_block_size(model: ModelFacts, config: EngineConfig) -> tuple[int, str]:
    """Tokens per block, and why."""
    if config.block_size is None:
        return model.block_size, f"A block holds {model.block_size} tokens, the best size for this backend."
    return config.block_size, f"A block holds {config.block_size} tokens, as set."


def choose_pool_limit(facts: MemoryFacts, config: EngineConfig, rest: int) -> tuple[int, str]:
    """The most bytes the pool may take, and why. `rest` is what weights and activations leave."""
    if config.kv_pool_bytes is not None:
        if config.kv_pool_bytes > rest:
            raise ModelTooLarge(
                f"kv_pool_bytes asks for {in_words(config.kv_pool_bytes)}; {in_words(max(0, rest))} are free "
                "beside the weights. Set it lower, or close other programs."
            )
        return config.kv_pool_bytes, "as set."
    if not facts.unified:
        usable = int(facts.available * config.memory_utilization) - (facts.available - rest)
        return usable, f"{config.memory_utilization:.0%} of the free memory, less weights and buffers."
    left = min(LEFT_TO_OTHERS, facts.total // 4)
    if rest - left < rest // 2:
        return (
            rest - left,
            f"of {in_words(facts.available)} free, {in_words(left)} stay free for other programs.",
        )
    return rest // 2, f"that is half of the {in_words(rest)} free beside the weights."


def choose_context(
    model: ModelFacts, config: EngineConfig, chat: Chat, most: int, total: int
) -> tuple[int, str]:
    """Tokens a conversation may have, and why. At least one chat of that length fits the pool.

    The longest leaves to the wanted chats, or as many of usual length as fit, the windows that each of them
    needs. What is set beyond the model's own, for another model perhaps, is as if nothing were.
    """
    longest = model.context_length
    chosen = config.context_length if (config.context_length or 0) <= longest else None
    wanted = chosen or longest
    usual = partial(chat.bytes, min(wanted, USUAL_CONTEXT))
    num_windows = 1 if chosen else bisect_right(range(1, config.num_chats + 1), most, key=usual)
    lengths = range(chat.block_size, wanted + chat.block_size, chat.block_size)
    with_windows = partial(chat.bytes, num_windows=num_windows)
    fitting = min(wanted, bisect_right(lengths, most, key=with_windows) * chat.block_size)
    least = wanted if chosen else min(LEAST_CONTEXT, wanted)
    if fitting < least:
        weights, one = model.weights_bytes, chat.bytes(least)
        if config.kv_pool_bytes:
            raise ModelTooLarge(
                f"kv_pool_bytes is set to {in_words(config.kv_pool_bytes)}, and {model.name} needs "
                f"{in_words(one)} for one chat of {least:,} tokens. Set it higher, or leave it out."
            )
        advice = "choose a smaller model" + (" or a shorter context" if chosen else "")
        if weights + one < total:
            advice = f"close other programs, or {advice}"
        raise ModelTooLarge(
            f"{model.name} needs {in_words(weights)} for its weights and {in_words(one)} for one chat of "
            f"{least:,} tokens, together {in_words(weights + one)}; {in_words(max(0, weights + most))} can "
            f"be used now. {advice.capitalize()}."
        )
    if chosen:
        return wanted, f"A chat can be {wanted:,} tokens long, as set."
    if fitting == longest:
        return longest, f"A chat can be {longest:,} tokens long, all that the model was made for."
    return fitting, f"A chat can be {fitting:,} tokens long, as the pool allows; the model, {longest:,}."


def in_words(num_bytes: float) -> str:
    """Bytes for people: 98.4 MB, and 1 GB is 1,000 MB, as disks and downloads are measured."""
    for unit in ("bytes", "kB", "MB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.2f} GB"
