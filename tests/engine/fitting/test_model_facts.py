"""What the memory plan is told of a checkpoint is what a loaded one takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import kernels
from engine import LLM, EngineConfig
from engine.checkpoints import open_checkpoint
from engine.fitting.model_facts import TOKEN_BYTES, model_facts
from engine.models import load_decoder, read_config
from engine.text.tokenizer import Tokenizer
from kernels.cpu import attend
from kernels.cpu.ops import CpuOps
from kernels.cpu.sampling import CpuSampler
from kernels.triton import TritonOps
from tests.tiny_models import write_tiny_gguf


def test_tables_are_counted(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", context_length=256).path
    ops = kernels.select("cpu", "reference")
    with open_checkpoint(path) as checkpoint:
        config = read_config(checkpoint)
        tokenizer = Tokenizer.of(checkpoint)
        facts = model_facts("tiny", checkpoint, config, ops, tokenizer=tokenizer)
        model = load_decoder(checkpoint, config, ops, config.context_length, lambda part: None)
    tables = {id(layer.rope): layer.rope for layer in model.layers}.values()
    turning = sum(table.cos.nbytes + table.sin.nbytes for table in tables)
    assert turning > 0 and facts.tables_bytes == TOKEN_BYTES["bytes"] * tokenizer.vocab_size + turning


@pytest.mark.parametrize("quantization", ["BF16", "Q8_0", "Q4_K", "Q6_K"])
def test_a_card_s_weights_are_counted_as_a_card_keeps_them(tmp_path: Path, quantization: str) -> None:
    """Floats take 16 bits there, not the 8.5 of a processor's; Q6_K takes nine."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantization=quantization, width=256).path
    ops = TritonOps("cpu", torch.bfloat16)
    packed, pack = [], ops.linear.pack
    ops.linear.pack = lambda *given: packed.append(pack(*given)) or packed[-1]  # type: ignore[method-assign]
    with open_checkpoint(path) as checkpoint:
        config = read_config(checkpoint)
        planned = model_facts("tiny", checkpoint, config, ops).weights_bytes
        load_decoder(checkpoint, config, ops, config.context_length, lambda part: None)
    parts = [part for matrix in packed for part in matrix.parts]
    took = sum(tensor.nbytes for part in parts for tensor in part.tensors.values())
    assert took == pytest.approx(planned, rel=0.05)


def test_what_ops_keep_beside_buffers_is_counted(tmp_path: Path) -> None:
    """The rows of attention that wait for being merged, what tokens are drawn from, and penalties' counts."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", context_length=256).path
    config = EngineConfig(max_step_tokens=64, max_num_seqs=3, threads=2, backend="numba")
    llm = LLM.load(path, config)
    ops, sampler = llm.runner.ops, llm.runner.ops.sampler(1, 512, 3)
    assert isinstance(ops, CpuOps) and isinstance(sampler, CpuSampler)
    layers, vocabulary = llm.runner.cache.layers, llm.tokenizer.vocab_size
    heads, head_dim = layers[0].num_heads, layers[0].head_dim
    partials = ops._scratch["partials"].nbytes
    assert ops.scratch_bytes(heads, head_dim, 64, 256, 0) == partials - attend.HEADER
    assert ops.scratch_bytes(0, 0, 64, 256, 512) == sampler._spare.nbytes - 2 * CpuSampler.SPARE * 32
    assert llm.facts.counts_bytes_per_seq == sampler.counts[0].nbytes // 512 * vocabulary
    llm.close()
