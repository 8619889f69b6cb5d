"""The real loader, with every setting at its least and at its most: what is accepted loads and answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.memory.loading import load_llm
from app.models.model_store import ModelFile
from app.settings import Home, parse_settings
from engine import Delta, Finish, FinishReason, Message, Request

LEAST = """
context_length = 512
num_chats = 1
keep_alive = 0.000001
keep_free = 0.000001
cache_quota = 0
models_quota = 1
[engine]
threads = 1
kv_pool_bytes = 16_777_216
max_num_seqs = 1
max_step_tokens = 17
target_step_s = 0.001
block_size = 16
swap_space = 0
memory_utilization = 0.01
"""
MOST = """
context_length = 16_777_216
num_chats = 65_536
keep_alive = 1_000_000
keep_free = 100_000
cache_quota = 1_000_000
models_quota = 1_000_000
[engine]
threads = 1024
max_num_seqs = 4096
max_step_tokens = 65_536
target_step_s = 60
block_size = 128
swap_space = 1_125_899_906_842_624
memory_utilization = 1.0
"""


@pytest.mark.parametrize(("text", "length"), [(LEAST, 512), (MOST, 8192)])
def test_at_their_ends_settings_load_and_answer(
    starter_model: Path, tmp_path: Path, text: str, length: int
) -> None:
    settings = parse_settings(Home(tmp_path), text)
    file = ModelFile("smollm2-135m", "SmolLM2", starter_model)
    model = load_llm(file, settings, b"secret", lambda stage, part: None)
    try:
        assert model.context_length == length
        sampling = replace(settings.sampling, temperature=0, max_tokens=8)
        *parts, finish = model.submit(Request((Message("user", "Say hello."),), sampling))
        assert isinstance(finish, Finish) and finish.reason is not FinishReason.ERROR, finish
        assert "hello" in "".join(part.text for part in parts if isinstance(part, Delta)).lower()
    finally:
        model.close()
