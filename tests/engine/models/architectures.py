"""What becomes of an architecture that families.py does not know: tried with a tiny model, and as
docs/MODELS.md has it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

import kernels
from engine.errors import UnsupportedModel
from engine.models import fallback_check, read_config
from engine.models.families import HF_FAMILIES
from engine.running.agreement import check_agreement
from engine.running.forward import Forward
from tests.source_tree import ROOT

from .tiny_architectures import make_architecture, make_config

SERVED, DISAGREES = "", "its logits change with how a text is computed"
REASONS = [text for name, text in vars(fallback_check).items() if name.isupper() and isinstance(text, str)]
STEPS = (30, 31, 32, 33, 34, 70)  # where steps end: a prompt, token by token, a longer piece
LENGTH = STEPS[-1]


def others() -> list[str]:
    """Every model_type that transformers has a decoder for and families.py has not."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as NAMES

    return sorted(NAMES.keys() - HF_FAMILIES.keys())


def documented() -> dict[str, str]:
    """model_type -> why it is refused, as the document has it."""
    text = (ROOT / "docs/MODELS.md").read_text("utf-8").partition("Served so, with transformers")[2]
    served, _, refused = text.partition("## Refused")
    found = dict.fromkeys(re.findall(r"`([\w-]+)`", served), SERVED)
    for why, kinds in re.findall(r"^\| (it.+?) \| (`.+`) \|$", refused, re.M):
        found |= dict.fromkeys(re.findall(r"`([\w-]+)`", kinds), why)
    return found


def outcome(kind: str, folder: Path) -> str:
    """The reason why it is refused, or SERVED, if its logits are transformers' own within 0.0001."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING

    model_class = MODEL_FOR_CAUSAL_LM_MAPPING[CONFIG_MAPPING[kind]]
    config = None if model_class._is_stateful else make_config(kind)
    said = json.loads(config.to_json_string(use_diff=False)) if config else {"model_type": kind}
    checkpoint: Any = SimpleNamespace(path=folder, source="hf", metadata=said, tensors={})
    try:
        read_config(checkpoint)
    except UnsupportedModel as error:
        assert repr(said["model_type"]) in str(error)
        return next(why for why in REASONS if why in str(error))
    make_architecture(config).save_pretrained(folder)
    model = model_class.from_pretrained(folder, attn_implementation="eager").eval()
    forward = Forward.of(folder, kernels.select("cpu", "reference"), 2 * LENGTH, 32)
    try:
        check_agreement(forward.model, forward.ops)
    except UnsupportedModel:
        return DISAGREES
    compare(forward, model)
    return SERVED


def compare(forward: Forward, model: Any) -> None:
    """Two texts in the same steps, and one that begins with two blocks of the first."""
    vocabulary = forward.model.config.vocab_size
    first, second = ([(i * by + 5) % (vocabulary - 3) + 3 for i in range(LENGTH)] for by in (7919, 104729))
    tables, shared = (range(1, 6), range(6, 11)), [1, 2, 11, 12, 13]
    rows: list[list[Tensor]] = [[], []]
    begin = 0
    for end in STEPS:
        found = forward(*((ids[begin:end], begin, table) for ids, table in zip((first, second), tables)))
        for mine, logits in zip(rows, found):
            mine.append(logits)
        begin = end
    third = [*first[:50], *second[50:]]
    (rest,) = forward((third[32:], 32, shared))
    for ids, ours in ((first, torch.cat(rows[0])), (second, torch.cat(rows[1])), (third, rest)):
        with torch.inference_mode():
            theirs = model(torch.tensor([ids]), use_cache=False).logits[0, :, :vocabulary]
        assert theirs.std() > 0.05, "the model says something"
        assert (ours - theirs[LENGTH - len(ours) :]).abs().max() < 1e-4
