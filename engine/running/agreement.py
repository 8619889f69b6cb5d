"""What transformers' code computes over our pages must be what it computes alone: shown on a few tokens, once
the weights are loaded.

Its attention interface promises keys, values and a few settings. Code that counts positions in its own way,
or lets tokens see each other in another, would not fail: it would make the model stupid.
"""

from __future__ import annotations

import torch

from kernels import Ops

from ..errors import UnsupportedModel
from ..models import Fallback, Model, alone
from .forward import Forward

# Token i of a text is i times this. In bfloat16 a few texts come out far apart though both ways are right:
# one pair of texts that agrees is enough, for code that is wrong is so in all.
TEXTS = (7919, 104_729, 1_299_709)
STEPS = ((0, 7), (7, 20), (20, 21), (21, 24))  # two texts are computed so, both in every step
# How far logits may be apart, in parts of their spread: rounding, and experts that were nearly chosen.
APART = {torch.float32: 0.01, torch.bfloat16: 0.2}


def check_agreement(model: Model, ops: Ops) -> None:
    """Raise UnsupportedModel for a fallback whose logits depend on how a text is computed."""
    if not isinstance(model, Fallback):
        return
    config = model.config
    assert config.borrowed
    limit, apart = APART[config.borrowed.dtype], float("inf")
    for factor in TEXTS:
        apart = min(apart, _apart(model, ops, factor))
        if apart < limit:
            return
    raise UnsupportedModel(
        f"{config.family.name}, cannot be used: computed over pages its logits are {apart:.0%} of their "
        "spread away from what they are alone."
    )


def _apart(model: Fallback, ops: Ops, factor: int) -> float:
    """How far the worse of a text and its reverse is from what it is alone; infinite if that is no number."""
    config, (_, length) = model.config, STEPS[-1]
    text = (torch.arange(length) * factor % config.vocab_size).tolist()
    blocks = -(-length // ops.block_size)
    texts = {tuple(text): range(1, 1 + blocks), tuple(reversed(text)): range(1 + blocks, 1 + 2 * blocks)}
    forward = Forward(model, ops, 2 * length, 1 + 2 * blocks)
    try:
        steps = [
            forward(*((ids[first:last], first, table) for ids, table in texts.items()))
            for first, last in STEPS
        ]
        alones = [alone(model, ids).to(steps[0][0]) for ids in texts]
    except Exception as error:
        raise UnsupportedModel(
            f"{config.family.name}, cannot be used: its code fails ({type(error).__name__}: {error!s:.100})."
        ) from error
    found = [
        (torch.cat(logits) - theirs).square().mean().sqrt() / theirs.std()
        for logits, theirs in zip(zip(*steps), alones)
    ]
    return max(float(each.nan_to_num(float("inf"))) for each in found)
