"""What the memory plan is told of a checkpoint is what a loaded one takes."""

from __future__ import annotations

from pathlib import Path

import kernels
from engine.checkpoints import open_checkpoint
from engine.fitting.model_facts import TOKEN_BYTES, model_facts
from engine.models import load_decoder, read_config
from tests.tiny_models import write_tiny_gguf


def test_tables_are_counted(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", context_length=256).path
    ops = kernels.select("cpu", "reference")
    with open_checkpoint(path) as checkpoint:
        config = read_config(checkpoint)
        facts = model_facts("tiny", checkpoint, config, ops)
        model = load_decoder(checkpoint, config, ops, config.context_length, lambda part: None)
    tables = {id(layer.rope): layer.rope for layer in model.layers}.values()
    turning = sum(table.cos.nbytes + table.sin.nbytes for table in tables)
    assert turning > 0 and facts.tables_bytes == TOKEN_BYTES["bytes"] * config.vocab_size + turning
