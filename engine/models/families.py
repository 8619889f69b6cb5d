"""The families that are served: how each differs from Llama, and what its tensors are called in both sources.

A part is a tensor's name here: "q", "down", "ffn_norm". A family is found by `model_type` in config.json and
by `general.architecture` in GGUF. What a single checkpoint decides (windows, ropes, scales) is in config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kernels import Activation


@dataclass(frozen=True, slots=True)
class Family:
    """How a family differs from the others that the same decoder serves."""

    name: str
    neighbour_rope: bool = False  # GGUF stores query and key rows so that rotated pairs are neighbours
    qkv_bias: bool = False  # always; elsewhere biases are taken where a checkpoint has them
    head_norms: Literal["", "head", "whole"] = ""  # queries and keys are normalized, each head or all at once
    pre_norms: bool = True  # of what goes into attention and feed-forward
    post_norms: bool = False  # of what comes out of them
    fused: bool = False  # q, k, v are one matrix, gate and up another
    experts: bool = False  # a mixture of experts in place of the feed-forward
    paired_experts: bool = False  # folders have them in one tensor, its gates and ups by turns
    sinks: bool = False  # a learned score of each head takes weight beside the keys'
    activation: Activation = "silu"
    scaled_embedding: bool = False  # times the root of the width
    gain_offset: float = 0.0  # what config.json's norms leave unsaid: gain = offset + weight
    hf_names: Mapping[str, str] = field(default_factory=dict)  # where they differ from HF_LAYER
    gguf_names: Mapping[str, str] = field(default_factory=dict)  # where they differ from GGUF_LAYER


_POST_NORMS = {
    "attention_post_norm": "post_attention_layernorm",
    "ffn_post_norm": "post_feedforward_layernorm",
}
_GEMMA = {
    "post_norms": True,
    "activation": "gelu_tanh",
    "scaled_embedding": True,
    "gain_offset": 1.0,
    "hf_names": {**_POST_NORMS, "ffn_norm": "pre_feedforward_layernorm"},
}
_MIXTRAL = {
    "router": "block_sparse_moe.gate",
    "gate": "block_sparse_moe.experts.{expert}.w1",
    "up": "block_sparse_moe.experts.{expert}.w3",
    "down": "block_sparse_moe.experts.{expert}.w2",
}

_PAIRED = {
    **dict.fromkeys(("gate", "up"), "mlp.experts.gate_up_proj"),
    "down": "mlp.experts.down_proj",
}

LLAMA = Family("Llama", neighbour_rope=True)
MISTRAL = Family("Mistral", neighbour_rope=True)
QWEN2 = Family("Qwen 2", qkv_bias=True)
QWEN3 = Family("Qwen 3", head_norms="head")
SMOLLM3 = Family("SmolLM 3", neighbour_rope=True)
PHI3 = Family("Phi 3", fused=True, gguf_names={"gate_up": "ffn_up"})
GRANITE = Family("Granite", neighbour_rope=True)
OLMO2 = Family("OLMo 2", head_norms="whole", pre_norms=False, post_norms=True, hf_names=_POST_NORMS)
GEMMA2 = Family("Gemma 2", **_GEMMA)  # type: ignore[arg-type]
GEMMA3 = Family("Gemma 3", head_norms="head", **_GEMMA)  # type: ignore[arg-type]
MIXTRAL = Family("Mixtral", neighbour_rope=True, experts=True, hf_names=_MIXTRAL)
QWEN3_MOE = Family("Qwen 3 MoE", head_norms="head", experts=True)
OLMOE = Family("OLMoE", head_norms="whole", experts=True)
GPT_OSS = Family(
    "gpt-oss",
    experts=True,
    paired_experts=True,
    sinks=True,
    activation="clamped_swiglu",
    hf_names={"router": "mlp.router", "sinks": "self_attn.sinks", **_PAIRED},
    gguf_names={"ffn_norm": "post_attention_norm", "sinks": "attn_sinks"},
)

HF_FAMILIES = {
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "smollm3": SMOLLM3,
    "phi3": PHI3,
    "granite": GRANITE,
    "olmo2": OLMO2,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "mixtral": MIXTRAL,
    "qwen3_moe": QWEN3_MOE,
    "olmoe": OLMOE,
    "gpt_oss": GPT_OSS,
}
GGUF_FAMILIES = {
    "llama": LLAMA,  # Mistral's files and, with experts, Mixtral's say "llama", too
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "smollm3": SMOLLM3,
    "phi3": PHI3,
    "granite": GRANITE,
    "olmo2": OLMO2,
    "gemma2": GEMMA2,
    "gemma3": GEMMA3,
    "qwen3moe": QWEN3_MOE,
    "olmoe": OLMOE,
    "gpt-oss": GPT_OSS,
}

GGUF_TOP = {"embedding": "token_embd", "norm": "output_norm", "head": "output"}
HF_TOP = {"embedding": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}
GGUF_LAYER = {
    "attention_norm": "attn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "qkv": "attn_qkv",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
    "output": "attn_output",
    "attention_post_norm": "post_attention_norm",
    "ffn_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
    "ffn_post_norm": "post_ffw_norm",
    "router": "ffn_gate_inp",
}
GGUF_EXPERTS = {"gate": "ffn_gate_exps", "up": "ffn_up_exps", "down": "ffn_down_exps"}  # all in one tensor
HF_LAYER = {
    "attention_norm": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "qkv": "self_attn.qkv_proj",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    "output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "gate_up": "mlp.gate_up_proj",
    "down": "mlp.down_proj",
    "router": "mlp.gate",
}
HF_EXPERTS = {part: f"mlp.experts.{{expert}}.{part}_proj" for part in ("gate", "up", "down")}


@dataclass(frozen=True, slots=True)
class Names:
    """What a checkpoint calls the parts of its family, without ".weight"."""

    family: Family
    source: Literal["gguf", "hf"]

    def top(self, part: str) -> str:
        """The name of a part that stands above the layers."""
        return (GGUF_TOP if self.source == "gguf" else HF_TOP)[part]

    def layer(self, i: int, part: str, expert: int | None = None) -> str:
        """The name of a part of layer `i`, or of one of its experts."""
        family = self.family
        if self.source == "gguf":
            table = {**GGUF_LAYER, **(GGUF_EXPERTS if expert is not None else {}), **family.gguf_names}
            return f"blk.{i}.{table[part]}"
        table = {**HF_LAYER, **(HF_EXPERTS if expert is not None else {}), **family.hf_names}
        return f"model.layers.{i}.{table[part].format(expert=expert)}"

    @property
    def paired(self) -> bool:
        """Whether experts' gates and ups stand by turns in one tensor, which has no ".weight"."""
        return self.family.paired_experts and self.source == "hf"

    def stem(self, i: int, part: str, expert: int | None = None) -> str:
        """What stands before the last dot of a part's tensors."""
        name = self.layer(i, part, expert)
        is_bare = self.source == "hf" and (part == "sinks" or (self.paired and expert is not None))
        return name.rpartition(".")[0] if is_bare else name

    def vector(self, i: int, part: str) -> str:
        """The whole name of a part that is a vector."""
        name = self.layer(i, part)
        return name if self.stem(i, part) != name else f"{name}.weight"

    def bias(self, i: int, part: str, expert: int | None = None) -> str:
        """The whole name of a part's bias."""
        return self.layer(i, part, expert) + ("_bias" if self.paired and expert is not None else ".bias")

    def stacked(self, expert: int | None) -> int | None:
        """Which matrix of its tensor an expert's is; None where each is a tensor of its own."""
        return expert if self.source == "gguf" or self.paired else None

    def parts(self, experts: bool) -> tuple[str, ...]:
        """What a layer has, in the order of the computation; experts' own matrices left out."""
        family = self.family
        wanted = {
            "attention_norm": family.pre_norms,
            **dict.fromkeys(("qkv",) if family.fused else ("q", "k", "v"), True),
            "q_norm": bool(family.head_norms),
            "k_norm": bool(family.head_norms),
            "sinks": family.sinks,
            "output": True,
            "attention_post_norm": family.post_norms,
            "ffn_norm": family.pre_norms,
            "router": experts,
            **dict.fromkeys(("gate_up",) if family.fused else ("gate", "up"), not experts),
            "down": not experts,
            "ffn_post_norm": family.post_norms,
        }
        return tuple(part for part, there in wanted.items() if there)
