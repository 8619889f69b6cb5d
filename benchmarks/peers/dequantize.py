"""The same weights as bfloat16 safetensors, for peers that do not run GGUF: `dequantize.py FROM TO`.

Read by transformers' own GGUF reader; no tokenizer is written, for peers are given token ids.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, GgufConfig

source, target = map(Path, sys.argv[1:])
options = {"quantization_config": GgufConfig(dequantize=True), "dtype": torch.bfloat16}
model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, **options)
model.save_pretrained(target)
