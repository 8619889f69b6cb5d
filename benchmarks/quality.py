"""What speed costs: perplexity on a fixed text, and how far the distributions are from float32's.

    perplexity  exp of the mean of -ln p(next token) over the text
    mean_kl     mean over positions of KL(float32 || side) in nats, the first position included

float32 is the plain torch backend on the same file's weights. The text is the first chapter of Pride and
Prejudice (Jane Austen, 1813; public domain); how good a model finds it does not matter, only how two programs
differ.
"""

from __future__ import annotations

import math
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from engine.checkpoints import read_gguf
from engine.text.tokenizer import Tokenizer

from .sides import Contender, Figures, Side, contender

TEXT = Path(__file__).with_name("austen.txt")
POSITIONS = 256  # of which whole distributions are compared


@cache
def text_ids(model: Path) -> list[int]:
    """The text in the model's tokens, begun as its prompts are."""
    with read_gguf(model) as checkpoint:
        tokenizer = Tokenizer.of(checkpoint)
    start = [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []
    return start + tokenizer.encode(TEXT.read_text(encoding="utf-8"), special=False)


def score(side: Side, ids: list[int]) -> tuple[list[float], np.ndarray]:
    """(log probability of each token after the first, logits of the first positions [T, vocabulary])."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "logits.npy"
        answer = side.ask("score", ids=ids, keep=POSITIONS, path=str(place))
        return answer["logprobs"], np.load(place)


@cache
def float_logits(model: Path) -> np.ndarray:
    """The reference's logits of the first positions."""
    who = contender("octavo", model, None, Path())
    with Side(Contender("float32", model, (*who.command, "--float32"))) as side:
        return score(side, text_ids(model)[:POSITIONS])[1]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """In float64, over the last axis."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(-1, keepdims=True)))


def divergence(reference: np.ndarray, other: np.ndarray) -> np.ndarray:
    """KL(reference || other) in nats at each position [T, vocabulary] -> [T]."""
    p, q = log_softmax(reference), log_softmax(other)
    return np.asarray((np.exp(p) * (p - q)).sum(-1))


def quality(side: Side, turn: int) -> Figures:
    """Perplexity of the text, closeness to float32."""
    logprobs, logits = score(side, text_ids(side.who.model))
    reference = float_logits(side.who.model)
    kl = divergence(reference, logits)
    return {
        "perplexity": math.exp(-sum(logprobs) / len(logprobs)),
        "mean_kl": float(kl.mean()),
        "median_kl": float(np.median(kl)),
        "first_kl": float(kl[0]),
        "same_top": float((reference.argmax(-1) == logits.argmax(-1)).mean()),
        "tokens": len(logprobs) + 1,
    }
