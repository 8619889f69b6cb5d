"""What is in a checkpoint, found out without loading it, and what would keep it from answering.

Small vectors are read, so that a norm of no finite numbers is found; matrices are not. The chat template is
rendered, in its own process as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from .checkpoints import Checkpoint, open_checkpoint
from .errors import EngineError, TemplateError
from .fitting.choice import ModelShape
from .fitting.inventory import Tensors, take_inventory
from .fitting.model_facts import fingerprint
from .formats import check_quantization, to_vector, to_weight
from .formats.stored import FLOATS
from .models import ModelConfig, read_config
from .models.families import GGUF_TOP
from .preparing import check_vocabulary
from .running.kv_cache import kind_facts
from .text.templates import TemplateRenderer, Turn
from .text.tokenizer import Tokenizer

Made = TypeVar("Made")
USER, ASSISTANT = ("user", "Hello"), ("assistant", "Hi")
# Role -> the conversation that shows whether a template takes it.
CONVERSATIONS: dict[str, list[Turn]] = {
    "user": [USER],
    "assistant": [USER, ASSISTANT, USER],
    "system": [("system", "Be brief."), USER],
}
DATE = "2000-01-01"
COMPARED, ALIKE = 64, 0.9  # rows of embedding and head, and how near to 1 the cosine of the two must be


@dataclass(frozen=True, slots=True)
class Inspection:
    """All findings. Numbers are 0 and texts empty where a problem kept them from being found."""

    path: str
    source: str  # "gguf" or "hf"
    files: tuple[str, ...]
    architecture: str
    family: str  # what serves it
    text_half_only: bool  # of a model that takes images or sound, too
    num_layers: int
    context_length: int
    parameters: int  # an embedding that is stored again as the head counts once
    disk_bytes: int
    memory_bytes: int
    tensors: tuple[Tensors, ...]
    num_tokens: int
    special_tokens: dict[str, str]
    end_tokens: tuple[str, ...]
    starts_with_bos: bool
    template: str  # "its own", or what takes its place
    template_roles: tuple[str, ...]
    fingerprint: str
    problems: tuple[str, ...]


def inspect_checkpoint(path: Path) -> Inspection:
    """Raises BadCheckpoint or UnsupportedModel where not even the names of the tensors can be read."""
    with open_checkpoint(path) as checkpoint:
        problems: list[str] = []

        def attempt(make: Callable[[], Made]) -> Made | None:
            try:
                return make()
            except EngineError as error:
                problems.append(str(error))
                return None

        attempt(lambda: check_quantization(checkpoint.metadata))
        config = attempt(lambda: read_config(checkpoint))
        tokenizer = attempt(lambda: Tokenizer.of(checkpoint))
        if config and tokenizer:
            attempt(lambda: check_vocabulary(checkpoint, tokenizer, config))
        tensors = attempt(lambda: take_inventory(checkpoint)) or ()
        unserved = sorted({each.source for each in tensors if not each.format})
        problems += [f"Tensors of type {kind} are not served." for kind in unserved]
        for name, tensor in checkpoint.tensors.items():
            if len(tensor.shape) == 1 and tensor.type in FLOATS:
                attempt(partial(to_vector, checkpoint, name, tensor.shape[0]))
        roles = attempt(lambda: _roles(tokenizer)) if tokenizer else None
        return _findings(checkpoint, config, tokenizer, tensors, roles or (), problems)


def shape_of(path: Path, name: str, on_card: bool = False) -> ModelShape:
    """A model whose files are here as choosing needs it (choice.py). Raises EngineError."""
    with open_checkpoint(path) as checkpoint:
        config, tensors = read_config(checkpoint), take_inventory(checkpoint, on_card=on_card)
        parameters = sum(each.parameters for each in tensors) - _stored_again(checkpoint)
    idle = 0
    if mixture := config.mixture:
        left_out = mixture.num_experts - mixture.top_k
        idle = config.num_layers * left_out * 3 * config.hidden_size * mixture.size
    active = max(parameters - idle, 1)
    rows = config.vocab_size * config.num_layers * config.input_size  # Gemma 4: told of a token once more
    kinds = kind_facts(config, torch.float16)
    borrowed = config.borrowed
    held = borrowed.weights_bytes if borrowed else sum(each.memory_bytes for each in tensors)
    return ModelShape(
        name,
        config.context_length,
        parameters,
        active,
        config.vocab_size * config.hidden_size + rows,
        kinds,
        borrowed=borrowed is not None,
        weights_bytes=held,
        rows=rows,
    )


def _roles(tokenizer: Tokenizer) -> tuple[str, ...]:
    """The roles that the chat template takes; none is an error, which says why."""
    taken, failure = [], TemplateError("The model's chat template takes no role.")
    renderer = TemplateRenderer.of(tokenizer)
    try:
        for role, turns in CONVERSATIONS.items():
            try:
                renderer.render(turns, DATE)
                taken.append(role)
            except TemplateError as error:
                failure = error
    finally:
        renderer.close()
    if not taken:
        raise failure
    return tuple(taken)


def _findings(
    checkpoint: Checkpoint,
    config: ModelConfig | None,
    tokenizer: Tokenizer | None,
    tensors: tuple[Tensors, ...],
    roles: tuple[str, ...],
    problems: list[str],
) -> Inspection:
    metadata = checkpoint.metadata
    named = metadata.get("general.architecture") or metadata.get("model_type") or "not named"
    own = tokenizer is not None and tokenizer.chat_template is not None
    return Inspection(
        path=str(checkpoint.path),
        source=checkpoint.source,
        files=tuple(path.name for path in checkpoint.files),
        architecture=f"{named!s:.80}",
        family=config.family.name if config else "",
        text_half_only=checkpoint.wrapped,
        num_layers=config.num_layers if config else 0,
        context_length=config.context_length if config else 0,
        parameters=sum(each.parameters for each in tensors) - _stored_again(checkpoint),
        disk_bytes=sum(each.disk_bytes for each in tensors),
        memory_bytes=sum(each.memory_bytes for each in tensors),
        tensors=tensors,
        num_tokens=tokenizer.vocab_size if tokenizer else 0,
        special_tokens=_special_tokens(tokenizer) if tokenizer else {},
        end_tokens=tuple(sorted(map(tokenizer.text_of, tokenizer.eos_ids))) if tokenizer else (),
        starts_with_bos=tokenizer is not None and tokenizer.add_bos,
        template="its own" if own else "none; ChatML is used",
        template_roles=roles,
        fingerprint=fingerprint(checkpoint),
        problems=tuple(dict.fromkeys(problems)),
    )


def _stored_again(checkpoint: Checkpoint) -> int:
    """Parameters of a GGUF file's head that is its embedding once more, mostly in a better type. No key says
    so; in such files both agree as far as their types allow, in others they have nothing in common.
    """
    embedding, head = GGUF_TOP["embedding"], GGUF_TOP["head"]
    stored = [checkpoint.tensors.get(f"{name}.weight") for name in (embedding, head)]
    if checkpoint.source != "gguf" or not stored[0] or not stored[1] or stored[0].shape != stored[1].shape:
        return 0
    num_rows, width = stored[0].shape
    rows = np.linspace(0, num_rows - 1, min(num_rows, COMPARED), dtype=int)
    try:
        first, second = (
            to_weight(checkpoint, name, (len(rows), width), rows).dequantize().ravel()
            for name in (embedding, head)
        )
    except EngineError:  # the inventory has told of it
        return 0
    return num_rows * width if torch.cosine_similarity(first, second, dim=0) > ALIKE else 0


def _special_tokens(tokenizer: Tokenizer) -> dict[str, str]:
    named = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id}
    return {name: tokenizer.text_of(index) for name, index in named.items() if index is not None}
