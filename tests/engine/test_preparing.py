"""What is known before weights are read, and what is let go of by then."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import BadRequest, EngineConfig
from engine.preparing import prepare
from engine.text.vocabulary import Texts
from tests.tiny_folders import write_tiny_folder
from tests.tiny_models import write_tiny_gguf

SMALL = EngineConfig(num_chats=1, max_num_seqs=2, max_step_tokens=64, threads=1, kv_pool_bytes=2**20)


def test_text_is_let_go_of_and_weights_are_not(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path / "folder")
    for path in (write_tiny_gguf(tmp_path / "tiny.gguf").path, tmp_path / "folder"):
        with prepare(path, SMALL) as ready:
            assert not any(key.startswith("tokenizer.") for key in ready.checkpoint.metadata)
            assert ready.checkpoint.text is None or not ready.checkpoint.text.tokenizer
            assert ready.tokenizer.encode("a b", special=False)
            assert ready.checkpoint.raw(next(iter(ready.checkpoint.tensors))).size
            ready.ops.close()


def test_kernels_end_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, closed = write_tiny_gguf(tmp_path / "tiny.gguf").path, []
    with pytest.raises(BadRequest, match="stop"), prepare(path, SMALL) as ready:
        close = ready.ops.close
        monkeypatch.setattr(type(ready.ops), "close", lambda ops: closed.append(ops) or close())
        raise BadRequest("stop")
    assert closed == [ready.ops]


def test_texts_in_one_piece() -> None:
    words = ["", "a", "\ud800", "▁Grüße", "", "🙂"]
    texts = Texts(words)
    assert list(texts) == words and len(texts) == 6 and texts[3] == "▁Grüße"
