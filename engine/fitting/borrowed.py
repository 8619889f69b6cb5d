"""Which architectures transformers' own code computes over our pages, by model_type.

For telling before anything is downloaded. Loading does not look here: it tries
(engine/models/fallback_check.py).
"""

from __future__ import annotations

from importlib.util import find_spec

WANTED = "transformers>=5.19,<5.30"  # as in pyproject.toml
_NAMES = (
    "afmoe apertus apertus1p5_text arcee aria_text axk1 beam bert bert-generation biogpt bitnet codegen "
    "cohere cohere2 cohere2_moe cohere_compass_text ctrl cwm deepseek_v2 deepseek_v3 dory dots1 electra "
    "ernie ernie4_5 ernie4_5_moe exaone exaone4 exaone_moe flex_olmo flint gemma gemma3n_text "
    "gemma4_unified_text glm glm4 glm4_moe glm4_moe_lite gpt-sw3 gpt2 gpt_bigcode gpt_neox gptj "
    "granite_swa granitemoe granitemoe_swa granitemoeshared helium hrm_text hunyuan_v1_dense "
    "hunyuan_v1_moe hy_v3 hyperclovax internlm3 iquestcoder jais2 kolibri1 laguna mellum minicpm3 "
    "minimax_m2 minimax_m3_vl_text ministral ministral3 modernbert-decoder moshi nanochat nemotron olmo "
    "olmo3 opt persimmon phi qwen2_moe roc_bert sarvam_mla sarvam_moe seed_oss solar_open stablelm "
    "starcoder2 vaultgemma youtu"
)
BORROWED = frozenset(_NAMES.split())


def can_borrow() -> bool:
    """Whether transformers is installed. Imports nothing."""
    return find_spec("transformers") is not None
