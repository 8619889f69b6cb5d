"""How well a model foretells a text: perplexity, exp of the mean of -ln p(next token).

The text is cut into windows, so that figures of machines with more and less memory can be compared. Each
begins anew, with the begin token where the model's prompts have one; a window's first token is not scored.
Lower is better, and only between forms of one model, whose tokens are the same, is it a fair comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch import Tensor

from .config import EngineConfig
from .errors import BadRequest
from .models import ModelConfig, load_decoder
from .preparing import prepare
from .running.agreement import check_agreement
from .running.forward import Forward

WINDOW = 2048  # tokens, of which the model may take fewer
STEP = 128  # tokens at once: the logits of a large vocabulary take a megabyte each
LEAST = 16  # fewer say nothing


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Of one text on one model. `num_tokens`: of the text, begin tokens not counted."""

    perplexity: float
    num_tokens: int
    num_scored: int
    window: int
    num_windows: int


def log_probabilities(forward: Forward, token_ids: Sequence[int]) -> Iterator[float]:
    """ln p of each token after the first, given those before it."""
    targets = iter(token_ids[1:])
    for logits in forward.read(token_ids):
        yield from picked(logits, targets)


def picked(logits: Tensor, targets: Iterator[int]) -> Iterator[float]:
    """ln p of a target in each row [T, vocabulary], in float64; the last row of a text has none."""
    for row, target in zip(logits, targets):  # in this order no target is lost where rows end
        yield float(row.double().log_softmax(-1)[target])


def perplexity(
    path: Path,
    text: str,
    config: EngineConfig = EngineConfig(),
    on_progress: Callable[[str, float], None] = lambda stage, part: None,
) -> Perplexity:
    """Score a text with the model of a file or folder. `on_progress` hears "weights" and "text", and how far.

    Raises BadRequest for a text that is too short; else as LLM.load does.
    """
    with prepare(path, config, on_progress=on_progress, sized=sizes) as ready:
        tokenizer, ops, (precision, _, plan) = ready.tokenizer, ready.ops, ready.fitting
        token_ids = tokenizer.encode(text, special=False)
        if len(token_ids) < LEAST:
            raise BadRequest(f"The text is too short: it has {len(token_ids)} of at least {LEAST} tokens.")
        start = [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []
        window = plan.context_length
        windows, num_blocks = split(token_ids, start, window), 1 - (-window // ops.block_size)
        progress, places = partial(on_progress, "weights"), num_blocks * ops.block_size
        decoder = load_decoder(ready.checkpoint, ready.config, ops, places, progress, precision)
        check_agreement(decoder, ops)
    try:
        forward = Forward(decoder, ops, STEP, num_blocks)
        scores: list[float] = []
        for n, ids in enumerate(windows, 1):
            scores += log_probabilities(forward, ids)
            on_progress("text", n / len(windows))
    finally:
        ops.close()
    mean = -sum(scores) / len(scores)
    return Perplexity(math.exp(mean), len(token_ids), len(scores), window, len(windows))


def split(token_ids: Sequence[int], start: Sequence[int], window: int) -> list[list[int]]:
    """Windows of a text, each with `start` before it. What is left over and has nothing to score goes."""
    size = window - len(start)
    parts = ([*start, *token_ids[first : first + size]] for first in range(0, len(token_ids), size))
    return [part for part in parts if len(part) > 1]


def sizes(config: EngineConfig, model: ModelConfig) -> EngineConfig:
    """One sequence of a window's length, of which every token's logits are wanted."""
    return replace(
        config,
        context_length=min(WINDOW, model.context_length),
        num_chats=1,
        max_num_seqs=STEP,
        max_step_tokens=STEP + 16,
        speculation="off",
        block_size=None,
        kv_pool_bytes=None,
    )
