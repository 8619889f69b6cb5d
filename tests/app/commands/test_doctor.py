"""What `octavo doctor` finds of the models here, without loading one."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from app.commands.doctor import examine, show
from app.errors import AppError
from app.models.catalogue import read_catalogue
from app.models.installed import Record, write_record
from app.models.model_store import ModelStore
from app.settings import Home, load_settings


def test_it_lists_all_models_that_octavo_models_lists_as_here(
    starter_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ModelStore(Home(tmp_path), read_catalogue())
    (own := tmp_path / "my-model.gguf").symlink_to(starter_model)
    for id, path in (
        ("my-model", own),
        ("gone-q4_k_m", tmp_path / "gone.gguf"),
        ("qwen3-0.6b@gguf-q8_0", own),
    ):
        store.own.keep(id, path=str(path))
    record = Record("found", "Found", "MIT", 2048, 10, "bf16", "maker/found", "1")
    (folder := store.folder / "found" / "bf16").mkdir(parents=True)
    write_record(folder, record)

    def no_model(*_: object, **__: object) -> NoReturn:
        raise AppError("It is not loaded here.")

    findings = examine(load_settings(Home(tmp_path)), lambda stage, part: None, no_model)
    assert findings["models"] == {
        "smollm2-135m": "missing",
        "qwen2.5-coder-1.5b": "missing",
        "qwen3-0.6b": "ready",
        "found@bf16": "ready",
        "my-model": "ready",
        "gone-q4_k_m": "missing",
    }
    show(findings)
    said = capsys.readouterr().out
    assert "  my-model: ready\n" in said and "  gone-q4_k_m: missing\n" in said
