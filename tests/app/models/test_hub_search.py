"""What the hub finds becomes what this program can run: by the real client, on all kinds of repositories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.errors import HubFailed
from app.models.fits import Machine, fit_models
from app.models.hub_client import Hub
from app.models.hub_search import look, search
from app.models.installed import make_record
from app.models.model_rows import record_model
from app.settings import Home, Settings
from engine import EngineConfig
from tests.app.fake_hub import FakeHub, Repo, folder_repo, gguf_repo, serving_hub

TOKEN = "hf_a-token-that-must-not-get-out"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving_hub(monkeypatch) as server:
        yield server


@pytest.fixture
def hub(server: FakeHub) -> Hub:
    return Hub(Settings(Home(Path()), hub=server.url), lambda: TOKEN)


def test_what_it_says_of_a_repository(server: FakeHub, hub: Hub) -> None:
    server.add(gguf_repo(word="Q4_K_M"))
    folder = server.add(folder_repo())
    folder.gated, folder.about["downloads"] = True, 900
    folder.about["config"]["max_position_embeddings"] = 4096
    first, second = search(hub, "tiny")
    model = first.model
    assert (first.repo, first.downloads, first.gated) == ("maker/Tiny", 900, True)
    assert (model.id, model.name, model.licence, model.parameters) == (
        "maker--tiny",
        "Tiny",
        "Apache-2.0",
        40_000,
    )
    assert [(each.format, each.repo, each.bytes) for each in model.variants] == [("bf16", "maker/Tiny", 0)]
    assert (second.model.context, second.model.licence, second.gated) == (2048, "", False)
    assert [each.format for each in second.model.variants] == ["GGUF Q4_K_M"]
    assert search(hub, "nothing like it") == []


def about(**more: Any) -> dict[str, Any]:
    return {"safetensors": {"parameters": {"BF16": 9}, "total": 9}, **more}


@pytest.mark.parametrize(
    ("name", "config", "format"),
    [
        ("m/a", {"model_type": "llama"}, "bf16"),
        ("m/a", {"model_type": "gemma3"}, "bf16"),  # its text half is served
        ("m/a", {"model_type": "mamba"}, None),
        ("m/a", {"model_type": "qwen3_5"}, None),
        ("m/a", {"model_type": ["cohere"]}, None),
        ("m/a", {"model_type": "cohere"}, "bf16"),  # by transformers' code
        ("m/a", {"model_type": "cohere", "quantization_config": {"quant_method": "awq"}}, None),
        ("m/a", {}, None),
        ("m/a", {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "GPTQ-Int4"),
        ("m/a", {"quantization_config": {"quant_method": "gptq", "bits": 8}}, "GPTQ-Int8"),
        ("m/a", {"quantization_config": {"quant_method": "gptq", "bits": 3}}, None),
        ("m/a", {"quantization_config": {"quant_method": "awq", "bits": 4}}, "AWQ"),
        ("m/a", {"quantization_config": {"quant_method": "fp8"}}, "FP8"),
        ("m/a-FP8", {"quantization_config": {"quant_method": "compressed-tensors"}}, "FP8"),
        ("m/a.w8a8", {"quantization_config": {"quant_method": "compressed-tensors"}}, "INT8"),
        ("m/a", {"quantization_config": {"quant_method": "compressed-tensors"}}, None),
        ("m/a", {"quantization_config": {"quant_method": "bitsandbytes"}}, None),
        ("m/a", {"quantization_config": {"quant_method": ["a"]}}, None),
    ],
)
def test_folders(server: FakeHub, hub: Hub, name: str, config: dict[str, Any], format: str | None) -> None:
    config = {"model_type": "qwen2", **config} if "quantization_config" in config else config
    server.add(Repo(name, {"model.safetensors": b"x"}, about(config=config)))
    found = [each.format for hit in search(hub, "") for each in hit.model.variants]
    assert found == ([format] if format else [])


@pytest.mark.parametrize("kind", ["cohere", "gpt_neox", "stablelm"])
def test_what_transformers_computes_has_a_badge(
    server: FakeHub, hub: Hub, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(Repo("m/a", {"model.safetensors": b"x"}, about(config={"model_type": kind})))
    (found,) = search(hub, "")
    (fit,) = fit_models([found.model], Machine(), EngineConfig())
    assert found.model.borrowed == kind and fit.variants[0].badge in ("fits", "tight")
    assert fit.variants[0].reason.endswith("Transformers' own code computes it, slower than other models.")
    fetched = record_model([make_record(found.model, "bf16", "m/a", "1", ())])
    (again,) = fit_models([fetched], Machine(), EngineConfig())
    assert again.variants[0].reason.endswith("computes it, slower than other models.")
    monkeypatch.setattr("engine.fitting.borrowed.find_spec", lambda name: None)  # it is not installed
    (found,) = search(hub, "")
    (fit,) = fit_models([found.model], Machine(), EngineConfig())
    assert fit.choice is None and fit.variants[0].badge == "unserved"
    assert fit.variants[0].reason == (
        f"a can't be used yet: its architecture, {kind}, is computed by transformers, which is not "
        "installed: pip install 'transformers>=5.19,<5.30'."
    )


@pytest.mark.parametrize(
    ("gguf", "files"),
    [
        ({"architecture": "mamba", "total": 5}, {"a-Q4_0.gguf": b"x"}),
        ({"architecture": ["x"], "total": 5}, {"a-Q4_0.gguf": b"x"}),
        ({"architecture": "llama", "total": "5"}, {"a-Q4_0.gguf": b"x"}),
        ({"architecture": "llama", "total": 5}, {"a-IQ2_XXS.gguf": b"x"}),
        ({"architecture": "llama", "total": 5}, {}),
        ({}, {"a-Q4_0.gguf": b"x"}),
    ],
)
def test_files_that_can_t_be_run_are_left_out(
    server: FakeHub, hub: Hub, gguf: dict[str, Any], files: dict[str, bytes]
) -> None:
    server.add(Repo("m/a", files, {"gguf": gguf}))
    assert search(hub, "") == []


def test_the_true_sizes(server: FakeHub, hub: Hub) -> None:
    repo = server.add(gguf_repo())
    repo.files |= {f"big-Q8_0-0000{part}-of-00002.gguf": b"x" * 5000 for part in (1, 2)}
    hit = look(hub, repo.name)
    assert hit
    assert {each.format: each.bytes for each in hit.model.variants} == {
        "GGUF Q8_0": 10_000,
        "GGUF Q4_0": 300_000,
    }
    server.add(Repo("m/other", {"readme": b""}))
    assert look(hub, "m/other") is None


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (401, {}, r"has no maker/Tiny, or does not show it to everyone \(401\)"),
        (403, {}, r"does not show maker/Tiny to you \(403\)"),
        (404, {}, r"has no maker/Tiny \(404\)"),
        (429, {"Retry-After": "90"}, r"asks to wait 90 s before it is asked again \(429"),
        (429, {}, r"asks to wait before it is asked again \(429"),
        (500, {}, "answered 500 when it was asked about maker/Tiny"),
        (418, {}, "answered 418"),
        (302, {"Location": "/api/models/maker/Tiny"}, "can't be reached: .*redirect"),
    ],
)
def test_a_hub_that_refuses_is_one_sentence(
    server: FakeHub, hub: Hub, status: int, headers: dict[str, str], said: str
) -> None:
    server.faults["/api/models/maker/Tiny"] = lambda handler: handler.say(status, {"error": "no"}, headers)
    with pytest.raises(HubFailed, match=said) as raised:
        hub.look("maker/Tiny")
    assert TOKEN not in str(raised.value)
    server.faults.clear()
    server.add(folder_repo())
    assert hub.look("maker/Tiny").sha


def test_no_hub_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    away = Hub(Settings(Home(Path()), hub="http://127.0.0.1:9"))
    for ask in (lambda: away.look("m/a"), lambda: away.search("a", "gguf")):
        with pytest.raises(HubFailed, match=r"The hub can't be reached: [^\[]+\.$"):
            ask()


def test_without_a_net_it_asks_whether_the_machine_is_online(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "*")  # a proxy would look the name up
    away = Hub(Settings(Home(Path()), hub="https://hub.invalid"))
    for ask in (lambda: away.look("m/a"), lambda: away.search("a", "gguf")):
        with pytest.raises(HubFailed, match=r"is not known here\. Is this machine online\?$"):
            ask()


def test_offline_nothing_is_asked(server: FakeHub) -> None:
    hub = Hub(Settings(Home(Path()), hub=server.url, offline=True))
    for ask in (lambda: search(hub, "a"), lambda: look(hub, "m/a"), lambda: hub.transfer("m/a")):
        with pytest.raises(HubFailed, match=r"set to stay offline \(`offline = true`\)"):
            ask()
    assert not server.asked


def test_a_proxy_is_asked_in_the_hub_s_stead(monkeypatch: pytest.MonkeyPatch, server: FakeHub) -> None:
    """What goes through it names the hub; the fake one answers as a proxy would."""
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.delenv("NO_PROXY", raising=False)
    from app.models.transfer import Transfer

    moving = Transfer("m/a", "http://hub.test", None)
    try:
        moving._client.get("http://hub.test/file")
    finally:
        moving.close()
    assert server.asked[-1][1]["host"] == "hub.test"
