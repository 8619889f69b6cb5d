"""How models are called."""

from __future__ import annotations

from app.models.ids import bare, key, repo_id, slug


def test_names() -> None:
    assert key("qwen3-0.6b", "GGUF Q8_0") == "qwen3-0.6b@gguf-q8_0" and slug("GPTQ-Int4") == "gptq-int4"
    assert bare("qwen3-0.6b@gguf-q8_0") == bare("qwen3-0.6b") == "qwen3-0.6b"
    assert repo_id("Maker/Some-Model-GGUF") == "maker--some-model-gguf"
