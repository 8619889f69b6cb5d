"""Folders with safetensors as loaded models: they answer as transformers does, and what is wrong is said."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import (
    LLM,
    BadCheckpoint,
    Delta,
    EngineConfig,
    EngineError,
    Message,
    ModelTooLarge,
    Request,
    SamplingParams,
)
from engine.checkpoints import open_checkpoint
from engine.fitting.model_facts import fingerprint
from tests.engine.test_llm import ask, lasting_threads, listen
from tests.tiny_folders import write_tiny_folder
from tests.tiny_tokenizers import KINDS, write_tokenizer

EXACT = EngineConfig(num_chats=2, max_num_seqs=4, max_step_tokens=64, backend="reference")
FAST = EngineConfig(num_chats=2, max_num_seqs=4, max_step_tokens=64, threads=2)


def greedy(model: Any, prompt: list[int], length: int) -> list[int]:
    model.generation_config.eos_token_id = None
    out = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=length,
        do_sample=False,
        pad_token_id=0,
    )
    return out[0, len(prompt) :].tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {"tokenizer": "llama3"},
        {"tokenizer": "mistral", "dtype": torch.bfloat16, "shards": True},
        {"tokenizer": "qwen2", "wrapped": True},
        {"tokenizer": "gemma", "dtype": torch.float16, "padding": 0},
    ],
    ids=["float32", "bfloat16, in shards", "wrapped for images", "float16"],
)
def test_a_folder_answers_as_transformers_does(tmp_path: Path, settings: dict[str, Any]) -> None:
    model = write_tiny_folder(tmp_path, **settings)
    assert len(list(tmp_path.glob("*.safetensors"))) > (3 if settings.get("shards") else 0)
    llm = LLM.load(tmp_path, EXACT)
    try:
        messages = (Message("user", "What is the opposite of hot?"),)
        prompt = llm.prompt(messages)
        text, token_ids, finish = listen(llm, ask(messages[0].content, max_tokens=20))
        assert finish.usage.prompt_tokens == len(prompt)
        assert token_ids == greedy(model, prompt, 20)
        assert text
    finally:
        llm.close()


def test_the_processors_kernels_take_folders(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path, dtype=torch.bfloat16)
    llm = LLM.load(tmp_path, FAST)
    try:
        assert len(listen(llm, ask("Name a colour.", max_tokens=12))[1]) == 12
        assert llm.facts.name == tmp_path.name
    finally:
        llm.close()


def test_a_reply_is_spliced_in_as_it_was_sampled(tmp_path: Path) -> None:
    """Whatever ids a model samples stand in the next prompt, for every kind of tokenizer."""
    for kind in KINDS:
        folder = tmp_path / kind
        write_tiny_folder(folder, tokenizer=kind, padding=0)
        llm = LLM.load(folder, EXACT)
        try:
            question = Message("user", "Go on")
            deltas = [part for part in llm.submit(ask("Go on", max_tokens=15)) if isinstance(part, Delta)]
            ids = tuple(i for delta in deltas for i in delta.token_ids)
            text = "".join(delta.text for delta in deltas)
            reply = Message("assistant", text, ids, llm.tokenizer.fingerprint)
            first = llm.prompt((question,))
            after = llm.prompt((question, reply, Message("user", "And then?")))
            assert after[: len(first) + len(ids) - 1] == first + list(ids[:-1]), kind
        finally:
            llm.close()


def write(folder: Path, **tensors: Any) -> None:
    """The folder's weights with some values changed."""
    path = folder / "model.safetensors"
    found = load_file(path)
    for name, change in tensors.items():
        change(found[name.replace("__", ".")])
    save_file(found, path)


def spoil(value: float) -> Any:
    return lambda tensor: tensor.view(-1)[5].fill_(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_vectors_that_are_no_numbers_are_found_at_once(tmp_path: Path, value: float) -> None:
    write_tiny_folder(tmp_path)
    write(tmp_path, model__layers__1__input_layernorm__weight=spoil(value))
    with pytest.raises(BadCheckpoint, match=r"1 of 64 .* are no finite numbers"):
        LLM.load(tmp_path, EXACT)


@pytest.mark.parametrize("config", [EXACT, FAST], ids=["reference", "numba"])
def test_matrices_that_are_no_numbers_never_answer(tmp_path: Path, config: EngineConfig) -> None:
    write_tiny_folder(tmp_path)
    write(tmp_path, lm_head__weight=lambda tensor: tensor.fill_(float("nan")))
    before = lasting_threads()
    with pytest.raises(EngineError):
        LLM.load(tmp_path, config)
    assert lasting_threads() == before


def test_a_vocabulary_larger_than_the_embedding(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path, tokenizer="llama3", padding=-3)
    with pytest.raises(BadCheckpoint, match=r"tokenizer has \d+ tokens and the model knows \d+; the files"):
        LLM.load(tmp_path, EXACT)


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path, tokenizer="llama3")  # about 430 tokens
    write_tokenizer(tmp_path, "gemma")  # about 680
    with pytest.raises(BadCheckpoint, match="do not belong together"):
        LLM.load(tmp_path, EXACT)


def test_a_model_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import engine.fitting.placement

    write_tiny_folder(tmp_path)
    little = replace(engine.fitting.placement.detect(), memory_total=2**20, memory_available=2**19)
    monkeypatch.setattr(engine.fitting.placement, "detect", lambda *given, **more: little)
    before = lasting_threads()
    with pytest.raises(ModelTooLarge, match=r"\d"):
        LLM.load(tmp_path, EXACT)
    assert lasting_threads() == before


def test_nothing_is_left_of_what_could_not_be_loaded(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path, shards=True)
    last = sorted(tmp_path.glob("*.safetensors"))[-1]
    whole = last.read_bytes()
    before = lasting_threads()
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0
    for broken in (whole[:-1], b"", None):
        last.unlink(missing_ok=True)
        if broken is not None:
            last.write_bytes(broken)
        with pytest.raises(BadCheckpoint, match=last.name.replace(".", r"\.")):
            LLM.load(tmp_path, EXACT)
    assert lasting_threads() == before
    assert not files or len(os.listdir("/proc/self/fd")) <= files


def test_without_a_template_chatml_is_used(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path, template=None)
    llm = LLM.load(tmp_path, EXACT)
    try:
        spelled = "".join(map(llm.tokenizer.text_of, llm.prompt((Message("user", "Hi"),))))
        assert spelled.startswith("<s><|im_start|>user")
    finally:
        llm.close()


def test_code_in_a_folder_is_never_run(tmp_path: Path) -> None:
    """auto_map where the architecture is served: the model loads, the code does not."""
    write_tiny_folder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    code = {"AutoConfig": "modeling_evil.C", "AutoModelForCausalLM": "modeling_evil.M"}
    config |= {"auto_map": code, "trust_remote_code": True, "_attn_implementation_internal": "owner/evil"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for name in ("modeling_evil.py", "__init__.py", "evil.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nC = M = object\n")
    llm = LLM.load(tmp_path, EXACT)
    try:
        listen(llm, ask("hello", max_tokens=2))
    finally:
        llm.close()
    assert not (tmp_path / "ran").exists()


def test_fingerprints_tell_trainings_apart(tmp_path: Path) -> None:
    def fingerprint_of() -> str:
        with open_checkpoint(tmp_path) as checkpoint:
            return fingerprint(checkpoint)

    write_tiny_folder(tmp_path)
    first = fingerprint_of()
    assert fingerprint_of() == first
    write(tmp_path, model__layers__0__mlp__up_proj__weight=lambda tensor: tensor.mul_(1.001))
    second = fingerprint_of()
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    third = fingerprint_of()
    write_tokenizer(tmp_path, "qwen2")
    assert len({first, second, third, fingerprint_of()}) == 4


def test_requests_are_refused_as_ever(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path)
    llm = LLM.load(tmp_path, EXACT)
    try:
        with pytest.raises(EngineError, match="512 fit"):
            llm.submit(Request((Message("user", "word " * 2000),), SamplingParams()))
    finally:
        llm.close()
