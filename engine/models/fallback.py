"""An architecture that families.py does not know, computed by transformers' own code over our pages.

transformers calls attention by a name in the model's configuration. Here the name is ours: keys and values go
to their slots, and attention looks at pages, by the same two ops as in decoder.py. All sequences of a step
are one row of tokens that know their positions. Each call of attention is a layer, whatever it belongs to.
Which architectures can be computed so is fallback_check.py's affair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernels import ForwardBatch, KVLayer, Ops, Rope

from ..checkpoints import Checkpoint
from ..errors import BadCheckpoint, UnsupportedModel
from ..formats import FLOATS, to_tensor
from .config import Borrowed, ModelConfig
from .decoder import Buffers

# Names of attention: ours, which gets no masks; ours that gets what makes masks; one of transformers' own.
ATTENTION, FOLLOWED, OWN = "octavo", "octavo_followed", "eager"
EXPERTS, NO_EXPERTS = "eager", "octavo_none"  # those that have tokens, in a loop; and what computes nothing
HARMLESS = re.compile(r".*(\.position_ids|\.(masked_)?bias|inv_freq)")  # masks and tables of old checkpoints


class Listener(Protocol):
    """What stands where a model's attention is."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Any, more: dict[str, Any]) -> Tensor:
        """[1, heads, tokens, width] each -> [1, tokens, heads, width of a value]."""
        ...


def import_transformers() -> Any:
    """The package, silent and told the names of our attention. Raises ImportError."""
    import transformers
    from transformers.integrations.moe import ExpertsInterface

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name in (ATTENTION, FOLLOWED):
        transformers.AttentionInterface.register(name, _attention)
    transformers.AttentionMaskInterface.register(
        FOLLOWED, lambda *_, mask_function, **more: Mask(mask_function)
    )
    ExpertsInterface.register(NO_EXPERTS, lambda module, hidden, *more: torch.empty_like(hidden))
    return transformers


def _attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, **more: Any
) -> tuple[Tensor, None]:
    """As transformers calls it."""
    more.setdefault("is_causal", getattr(module, "is_causal", True))
    return module.octavo.attend(query, key, value, attention_mask, more), None


@dataclass(frozen=True, slots=True)
class Mask:
    """What stands in a mask's place: whether the token at one place sees that at another."""

    function: Callable[..., Tensor]  # batch, head, place, the other place

    def __getitem__(self, _: Any) -> Mask:
        return self

    def sees(self, place: int, other: int) -> bool:
        zero, *places = torch.tensor([0, place, other], device="cpu")
        return bool(self.function(zero, zero, *places))


def configure(library: Any, borrowed: Borrowed, attention: str = ATTENTION, experts: str = EXPERTS) -> Any:
    """transformers' configuration of a model."""
    made = library.CONFIG_MAPPING[borrowed.kind](**borrowed.settings)
    made._attn_implementation, made._experts_implementation = attention, experts
    return made


def listen(module: Any, listener: Listener) -> None:
    """Let every part of a model find what stands where attention is."""
    for part in module.modules():
        part.octavo = listener


class Pages:
    """Attention over pages, layer by layer. What a step consists of is set before it."""

    ops: Ops
    batch: ForwardBatch
    kv: tuple[KVLayer, ...]
    buffers: Buffers
    layer: int

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Any, more: dict[str, Any]) -> Tensor:
        """Heads narrower than a page's are padded: zeros add nothing to scores, values lose theirs again."""
        kv = replace(
            self.kv[self.layer],
            scale=more.get("scaling") or query.shape[-1] ** -0.5,
            soft_cap=more.get("softcap") or 0.0,
            sinks=more.get("s_aux"),
        )
        assert kv.window == (more.get("sliding_window") or 0), f"layer {self.layer} has another window now"
        ops, batch, own = self.ops, self.batch, self.buffers.layers[self.layer]
        self.layer += 1
        tokens, width = query.shape[2], value.shape[-1]
        heads = [pad(x[0].transpose(0, 1), (0, kv.head_dim - x.shape[-1])) for x in (query, key, value)]
        own.qkv[:tokens] = torch.cat(heads, 1).flatten(1)
        ops.rope_write(batch, own.qkv, _unturned(batch.positions.device), kv, own.q)
        ops.attention(batch, own.q, kv, own.attended)
        attended = own.attended[:tokens].unflatten(1, (kv.num_heads, kv.head_dim))
        return attended[None, ..., :width].to(query.dtype)


def _unturned(device: torch.device) -> Rope:
    """Queries and keys come turned: tables of no pairs, which take no memory."""
    none = torch.empty(1 << 40, 0, device=device)
    return Rope(none, none)


@dataclass(frozen=True, slots=True)
class Fallback:
    """A loaded model, with the face of a `Decoder`."""

    config: ModelConfig
    module: Any  # transformers' model, eval and listening to `pages`
    pages: Pages

    def reach(self, end: int) -> None:
        """It is ready for any position."""

    def forward(self, ops: Ops, batch: ForwardBatch, kv: tuple[KVLayer, ...], buffers: Buffers) -> None:
        """One step over the batch: keys and values go to their slots, logits to `buffers.logits`."""
        tokens, _, rows = (batch.host or batch).counts.tolist()
        pages = self.pages
        pages.ops, pages.batch, pages.kv, pages.buffers, pages.layer = ops, batch, kv, buffers, 0
        if tokens:
            given = batch.token_ids[None, :tokens], batch.positions[None, :tokens], batch.logit_rows[:rows]
            buffers.logits[:rows] = logits_of(self.module, *given)[:, : self.config.vocab_size]


def logits_of(module: Any, token_ids: Tensor, positions: Tensor | None, rows: Tensor, **more: Any) -> Tensor:
    """[1, T] token ids, their positions if these are not 0, 1, 2 ... -> logits of some, [R, vocabulary]."""
    with torch.inference_mode():
        found = module(
            input_ids=token_ids, position_ids=positions, use_cache=False, logits_to_keep=rows, **more
        )
    logits: Tensor = found.logits[0]
    return logits


def alone(model: Fallback, token_ids: Sequence[int]) -> Tensor:
    """A text's logits [T, vocabulary] as transformers computes them, by its own attention."""
    made, tokens = model.module.config, torch.tensor([token_ids], device=model.module.device)
    made._attn_implementation = OWN
    try:
        found = logits_of(model.module, tokens, None, torch.arange(len(token_ids), device=tokens.device))
        return found[:, : model.config.vocab_size]
    finally:
        made._attn_implementation = ATTENTION


def load_fallback(
    checkpoint: Checkpoint, config: ModelConfig, ops: Ops, on_progress: Callable[[float], None]
) -> Fallback:
    """Let transformers take the checkpoint's tensors, one after the other, by the names that it knows.

    Raises BadCheckpoint for tensors that are missing or of another shape, UnsupportedModel for unknown ones.
    """
    assert config.borrowed
    library = import_transformers()
    made = configure(library, config.borrowed)
    names = [name for name, info in checkpoint.tensors.items() if info.type in FLOATS]
    tensors = {name: _Stored(checkpoint, name, i / len(names), on_progress) for i, name in enumerate(names)}
    module, report = library.MODEL_FOR_CAUSAL_LM_MAPPING[type(made)].from_pretrained(
        None,
        config=made,
        state_dict=tensors,
        dtype=config.borrowed.dtype,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    where = checkpoint.path.name
    for name, stored, wanted in sorted(report["mismatched_keys"]):
        raise BadCheckpoint(f"{where}: tensor {name} is {list(stored)}, expected {list(wanted)}.")
    for name in sorted(report["missing_keys"]):
        raise BadCheckpoint(f"{where} has no tensor {name}; the model is incomplete.")
    for name in sorted(report["unexpected_keys"]):
        if not HARMLESS.fullmatch(name):
            raise UnsupportedModel(
                f"{where} cannot be used: it has a tensor {name!r:.80}, which has no place in "
                f"{config.family.name}."
            )
    pages = Pages()
    listen(module, pages)
    return Fallback(config, module.eval().to(ops.device), pages)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A tensor that is read when transformers asks for it, which it does by [...]."""

    checkpoint: Checkpoint
    name: str
    part: float  # of all, which are asked for about in this order
    on_progress: Callable[[float], None]

    def __getitem__(self, _: Any) -> Tensor:
        self.on_progress(self.part)
        return to_tensor(self.checkpoint, self.name)
