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
    experts_beside: bool = False  # a layer that has experts has its feed-forward, too
    # Gates and ups of all experts in one tensor: by turns, in folders alone; or the ones after the others.
    joined_experts: Literal["", "turns", "halves"] = ""
    value_norms: bool = False  # each head's values are normalized, without gains
    per_layer_embeddings: bool = False  # a layer may have them, and ends with a factor
    sinks: bool = False  # a learned score of each head takes weight beside the keys'
    activation: Activation = "silu"
    scaled_embedding: bool = False  # times the root of the width
    gain_offset: float = 0.0  # what config.json's norms leave unsaid: gain = offset + weight
    hf_names: Mapping[str, str] = field(default_factory=dict)  # where they differ from HF_LAYER
    gguf_names: Mapping[str, str] = field(default_factory=dict)  # where they differ from GGUF_LAYER
    hf_experts: Mapping[str, str] = field(default_factory=dict)  # where they differ from HF_EXPERTS
    gguf_experts: Mapping[str, str] = field(default_factory=dict)  # where they differ from GGUF_EXPERTS


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
MIXTRAL = Family(
    "Mixtral",
    neighbour_rope=True,
    experts=True,
    hf_names={"router": "block_sparse_moe.gate"},
    hf_experts=_MIXTRAL,
)
QWEN3_MOE = Family("Qwen 3 MoE", head_norms="head", experts=True)
OLMOE = Family("OLMoE", head_norms="whole", experts=True)
GEMMA4 = Family(
    "Gemma 4",
    head_norms="head",
    value_norms=True,
    per_layer_embeddings=True,
    experts_beside=True,
    joined_experts="halves",
    hf_experts={
        **dict.fromkeys(("gate", "up"), "experts.gate_up_proj"),
        "down": "experts.down_proj",
    },
    gguf_experts=dict.fromkeys(("gate", "up"), "ffn_gate_up_exps"),
    post_norms=True,
    activation="gelu_tanh",
    scaled_embedding=True,
    hf_names={**_POST_NORMS, "ffn_norm": "pre_feedforward_layernorm", "router": "router.proj"},
)
GPT_OSS = Family(
    "gpt-oss",
    experts=True,
    joined_experts="turns",
    sinks=True,
    activation="clamped_swiglu",
    hf_names={"router": "mlp.router", "sinks": "self_attn.sinks"},
    hf_experts=_PAIRED,
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
    "gemma4_text": GEMMA4,
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
    "gemma4": GEMMA4,
    "qwen3moe": QWEN3_MOE,
    "olmoe": OLMOE,
    "gpt-oss": GPT_OSS,
}

GGUF_TOP = {
    "embedding": "token_embd",
    "norm": "output_norm",
    "head": "output",
    "inputs": "per_layer_token_embd",
    "inputs_of_hidden": "per_layer_model_proj",
    "inputs_norm": "per_layer_proj_norm",
}
HF_TOP = {
    "embedding": "model.embed_tokens",
    "norm": "model.norm",
    "head": "lm_head",
    "inputs": "model.embed_tokens_per_layer",
    "inputs_of_hidden": "model.per_layer_model_projection",
    "inputs_norm": "model.per_layer_projection_norm",
}
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
    "input_gate": "inp_gate",
    "input_output": "proj",
    "input_post_norm": "post_norm",
    "factor": "layer_output_scale",
    "router_scale": "ffn_gate_inp.scale",
    "expert_scales": "ffn_down_exps.scale",
    "dense_post_norm": "post_ffw_norm_1",
    "experts_norm": "pre_ffw_norm_2",
    "experts_post_norm": "post_ffw_norm_2",
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
    "input_gate": "per_layer_input_gate",
    "input_output": "per_layer_projection",
    "input_post_norm": "post_per_layer_input_norm",
    "factor": "layer_scalar",
    "router_scale": "router.scale",
    "expert_scales": "router.per_expert_scale",
    "dense_post_norm": "post_feedforward_layernorm_1",
    "experts_norm": "pre_feedforward_layernorm_2",
    "experts_post_norm": "post_feedforward_layernorm_2",
    "router": "mlp.gate",
}
BESIDE_PARTS = "router_scale", "expert_scales", "dense_post_norm", "experts_norm", "experts_post_norm"
BARE = "router_scale", "expert_scales"  # whose names are whole
INPUT_PARTS = "input_gate", "input_output", "input_post_norm"  # of per-layer embeddings
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
            experts = {} if expert is None else {**GGUF_EXPERTS, **family.gguf_experts}
            return f"blk.{i}.{ {**GGUF_LAYER, **experts, **family.gguf_names}[part] }"
        experts = {} if expert is None else {**HF_EXPERTS, **family.hf_experts}
        table = {**HF_LAYER, **family.hf_names, **experts}
        return f"model.layers.{i}.{table[part].format(expert=expert)}"

    @property
    def joined(self) -> Literal["", "turns", "halves"]:
        """How experts' gates and ups stand in one tensor."""
        joined = self.family.joined_experts
        return joined if self.source == "hf" or joined == "halves" else ""

    def stem(self, i: int, part: str, expert: int | None = None) -> str:
        """What stands before the last dot of a part's tensors."""
        name = self.layer(i, part, expert)
        is_joined = self.joined and expert is not None
        is_bare = part in BARE or (self.source == "hf" and (part in ("sinks", "factor") or is_joined))
        return name.rpartition(".")[0] if is_bare else name

    def vector(self, i: int, part: str) -> str:
        """The whole name of a part that is a vector."""
        name = self.layer(i, part)
        return name if self.stem(i, part) != name else f"{name}.weight"

    def bias(self, i: int, part: str, expert: int | None = None) -> str:
        """The whole name of a part's bias."""
        is_bare = self.source == "hf" and self.joined and expert is not None
        return self.layer(i, part, expert) + ("_bias" if is_bare else ".bias")

    def stacked(self, expert: int | None) -> int | None:
        """Which matrix of its tensor an expert's is; None where each is a tensor of its own."""
        return expert if self.source == "gguf" or self.joined else None

    def parts(self, experts: bool) -> tuple[str, ...]:
        """What a layer has, in the order of the computation; experts' own matrices left out."""
        family = self.family
        dense = not experts or family.experts_beside
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
            **dict.fromkeys(BESIDE_PARTS, experts and family.experts_beside),
            **dict.fromkeys(("gate_up",) if family.fused else ("gate", "up"), dense),
            "down": dense,
            "ffn_post_norm": family.post_norms,
            **dict.fromkeys((*INPUT_PARTS, "factor"), family.per_layer_embeddings),
        }
        return tuple(part for part, there in wanted.items() if there)
