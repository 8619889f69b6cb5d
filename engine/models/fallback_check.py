"""Whether transformers' own code can compute, over our pages, an architecture that families.py does not know.

    known there as a decoder · told positions · attention and masks those of the attention interface · keys
    and values its only state · every layer with the same heads

The code is followed once, on tensors without numbers, to see what it asks of attention. It is what is
installed as transformers; programs in a model's folder are never looked at. That numbers come out as they do
there is shown when the weights are loaded (engine/running/agreement.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..errors import BadCheckpoint
from ..fitting.borrowed import WANTED
from ..formats import FLOATS
from .config import MOST_EXPERTS, Borrowed, LayerConfig, ModelConfig
from .fallback import FOLLOWED, HARMLESS, NO_EXPERTS, Mask, configure, import_transformers, listen, logits_of
from .families import HF_FAMILIES, Family, Names
from .keys import Keys

# Settings that choose programs, or what is given back: they are decided here.
NOT_TAKEN = re.compile(
    r"_.*|auto_map|architectures|\w+_implementation|name_or_path|transformers_\w+|(torch_)?dtype"
    r"|(fusion|kernel|quantization|compression|distributed)_config"
    r"|output_(attentions|hidden_states|router_logits)|return_dict|use_cache"
)
# Settings that say how often a part is built.
REPEATS = re.compile(r".*(layer|expert|block|depth|stage|cycle|loop|stack|head)s?")
LAYER_KINDS = {"full_attention", "sliding_attention"}
STEADY_ROPES = {"default", "linear", "llama3", "yarn", "proportional"}  # others change as a text grows
UNDERSTOOD = {"scaling", "sliding_window", "softcap", "s_aux", "is_causal", "dropout", "position_ids"}
TOKENS, FAR = 4, 1 << 40  # the code is followed with so many; a place behind all windows

ENCODER = "it has an encoder"
STATE = "it keeps more of a text than keys and values"
KINDS = "it has layers of a kind of their own"
SEVERAL = "it is put together of several models"
POSITIONS = "it cannot be told positions"
ROWS = "it cannot be asked for single tokens' logits"
ROPES = "its ropes change as a text grows"
INTERFACE = "its attention, or its masks, are not those of transformers' attention interface"
NOT_FOLLOWED = "its code cannot be followed with tokens and positions alone"
UNEQUAL = "its layers differ in heads"
NO_LENGTH = "it does not say how long a text may be"


class _Refused(Exception):
    """One of the reasons above, or with more words."""


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked of attention once."""

    heads: tuple[int, int]  # of queries, of keys and values
    width: int  # of the wider of keys and values
    window: int


@dataclass(slots=True)
class Follower:
    """Stands where attention is, and notes what is asked of it."""

    calls: list[Call] = field(default_factory=list)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Any, more: dict[str, Any]) -> Tensor:
        """See Listener. Gives back a tensor without numbers."""
        window = more.get("sliding_window") or 0
        if {(len(each), each.shape[2]) for each in (query, key, value)} != {(1, TOKENS)}:
            raise _Refused(f"{INTERFACE}: it attends to something else than the text")
        if more["is_causal"] is False or not (mask is None or is_window(mask, window)):
            raise _Refused(f"{INTERFACE}: tokens see others than those before them")
        given = {name for name, value in more.items() if isinstance(value, Tensor) or value}
        if odd := sorted(given - UNDERSTOOD):
            raise _Refused(f"{INTERFACE}: {odd[0]} is not understood here")
        width = max(key.shape[-1], value.shape[-1])
        self.calls.append(Call((query.shape[1], key.shape[1]), width, window))
        return query.new_empty(1, TOKENS, query.shape[1], value.shape[-1])


def is_window(mask: Any, window: int) -> bool:
    """Whether a token sees itself and the window - 1 tokens before it; window 0: all before it."""
    if not isinstance(mask, Mask):
        return False
    first = FAR - window + 1 if window else 0
    hidden = (first - 1, FAR + 1) if window else (FAR + 1,)
    seen = (first, (first + FAR) // 2, max(first, FAR - 1), FAR)
    return all(mask.sees(FAR, at) for at in seen) and not any(mask.sees(FAR, at) for at in hidden)


def read_fallback(keys: Keys) -> ModelConfig:
    """The shape of a model that transformers can compute. Raises UnsupportedModel, which names the
    architecture and the reason, or BadCheckpoint.
    """
    kind = str(keys.get("model_type"))
    try:
        return _read(keys, kind)
    except _Refused as refused:
        raise keys.unserved(
            f"its model_type is {kind!r:.40}; {refused}. These are served: {', '.join(HF_FAMILIES)}, and "
            "what transformers can compute over pages"
        ) from refused.__cause__


def _read(keys: Keys, kind: str) -> ModelConfig:
    try:
        library = import_transformers()
    except ImportError as error:
        why = f"only transformers may know it, which is not installed: pip install '{WANTED}'"
        raise _Refused(why) from error
    known, decoders = library.CONFIG_MAPPING, library.MODEL_FOR_CAUSAL_LM_MAPPING
    if kind not in known or known[kind] not in decoders:
        raise _Refused(f"transformers {library.__version__} has no decoder of that name, either")
    model_class = decoders[known[kind]]
    if model_class._is_stateful:
        raise _Refused(STATE)
    borrowed = Borrowed(kind, _settings(keys), _dtype(keys), 0, 0)
    try:
        made = configure(library, borrowed, FOLLOWED, NO_EXPERTS)
    except Exception as error:
        raise BadCheckpoint(
            f"{keys.file} is damaged: its config.json makes no {kind} ({_short(error)})."
        ) from error
    for refused, why in _objections(made, inspect.signature(model_class.forward).parameters):
        if refused:
            raise _Refused(why)
    module, calls, num_logits = _follow(made, model_class)
    return _config(keys, borrowed, made, module, calls, num_logits)


def _settings(keys: Keys) -> dict[str, Any]:
    """What is taken of config.json; of no part are there more than a sound model can have."""
    most = max(len(keys.checkpoint.tensors), MOST_EXPERTS)

    def taken(table: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for key, value in table.items():
            if type(value) is int and value > most and REPEATS.fullmatch(key):
                raise keys.bad(key, value, f"at most {most}")
            if not NOT_TAKEN.fullmatch(key):
                found[key] = taken(value) if isinstance(value, dict) else value
        return found

    return taken(keys.table)


def _dtype(keys: Keys) -> torch.dtype:
    """bfloat16 where all matrices are, else float32."""
    types = set()
    for name, info in keys.checkpoint.tensors.items():
        if info.type not in FLOATS and not HARMLESS.fullmatch(name):
            raise _Refused(
                f"its tensor {name:.80} has type {info.type}; transformers is given {', '.join(FLOATS)}"
            )
        if len(info.shape) > 1:
            types.add(info.type)
    return torch.bfloat16 if types == {"BF16"} else torch.float32


def _objections(made: Any, asked: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """What can be seen without running anything."""
    yield made.is_encoder_decoder or getattr(made, "add_cross_attention", False), ENCODER
    others = {"vision_config", "audio_config"} & set(made.sub_configs)
    yield bool(others) or made.get_text_config() is not made, SEVERAL
    yield "position_ids" not in asked, POSITIONS
    yield "logits_to_keep" not in asked, ROWS
    kinds = set(getattr(made, "layer_types", None) or ()) - LAYER_KINDS
    yield bool(kinds), f"{KINDS}: {', '.join(sorted(kinds))}"
    ropes = set(_rope_types(made.to_dict())) - STEADY_ROPES
    yield bool(ropes), f"{ROPES}: {', '.join(sorted(ropes))}"


def _rope_types(settings: Mapping[str, Any]) -> Iterator[str]:
    for key, value in settings.items():
        if key == "rope_type":
            yield str(value)
        elif isinstance(value, dict):
            yield from _rope_types(value)


def _follow(made: Any, model_class: Any) -> tuple[Any, list[Call], int]:
    """Run the code on nothing: the model, what it asked of attention, and how many logits a token has."""
    follower = Follower()
    try:
        with torch.device("meta"):
            module = model_class(made).eval()
            listen(module, follower)
            tokens, places = torch.zeros(1, TOKENS, dtype=torch.int64), torch.arange(TOKENS)[None]
            logits = logits_of(module, tokens, places, torch.arange(1), attention_mask=tokens + 1)
    except _Refused:
        raise
    except Exception as error:
        foreign = error.args == (FOLLOWED,) or Mask.__name__ in str(error)
        raise _Refused(INTERFACE if foreign else f"{NOT_FOLLOWED} ({_short(error)})") from error
    return module, follower.calls, logits.shape[-1]


def _config(
    keys: Keys, borrowed: Borrowed, made: Any, module: Any, calls: list[Call], num_logits: int
) -> ModelConfig:
    """The shape of a model whose code was followed."""
    heads, context_length = {call.heads for call in calls}, getattr(made, "max_position_embeddings", None)
    for refused, why in (
        (not calls, INTERFACE),
        (len(calls) < made.num_hidden_layers, STATE),
        (len(heads) > 1, UNEQUAL),
        (type(context_length) is not int, NO_LENGTH),
    ):
        if refused:
            raise _Refused(why)
    ((num_heads, num_kv_heads),) = heads
    rows, hidden_size = module.get_input_embeddings().weight.shape
    parameters = list(module.parameters())  # each once, wherever it is used
    layers = [each for each in parameters if each.dim() > 1 and rows not in each.shape]
    num_weights = sum(each.numel() for each in (*parameters, *module.buffers()))
    weights_bytes = borrowed.dtype.itemsize * num_weights
    widest = max((max(each.shape[-2:]) for each in layers), default=hidden_size)
    return ModelConfig(
        names=Names(Family(f"{borrowed.kind}, by transformers"), "hf"),
        layers=tuple(LayerConfig(None, call.window) for call in calls),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=16 * -(-max(call.width for call in calls) // 16),
        ffn_size=0,
        vocab_size=min(rows, num_logits),
        context_length=keys.count("context length", 1 << 30, context_length),
        rms_eps=0.0,
        biased=frozenset(),
        tied_head=False,
        borrowed=replace(borrowed, weights_bytes=weights_bytes, widest=widest),
    )


def _short(error: Exception) -> str:
    """The kind of an error and its first words."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]:.100}".rstrip(".: ")
