"""The commands about models, as a person types them, against a hub of our own."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from app.access.instance import Instance
from app.commands.commands import main
from app.models.tokens import HubToken
from app.settings import Home
from engine import in_words
from tests.app.fake_hub import FakeHub
from tests.tiny_models import write_tiny_gguf

Octavo = Callable[..., tuple[int, str, str]]


@pytest.fixture
def octavo(
    tmp_path: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Octavo:
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path))
    monkeypatch.setattr("app.commands.commands.prepare_process", lambda home: home.prepare())
    (tmp_path / "settings.toml").write_text(f'hub = "{hub.url}"')

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_repository_of_the_hub(octavo: Octavo, tmp_path: Path) -> None:
    code, out, err = octavo("models", "pull", "maker/Tiny-GGUF")
    folder = tmp_path / "models" / "maker--tiny-gguf" / "gguf-q4_0"
    assert (code, out) == (0, f"maker/Tiny-GGUF is ready: {folder}\n") and "fetching 100 %" in err
    assert "maker--tiny-gguf@gguf-q4_0" in octavo("models")[1].splitlines()[1]
    listed = json.loads(octavo("models", "--json")[1])
    assert all(each["purposes"] for each in listed["models"])
    assert listed["others"] == [{"id": "maker--tiny-gguf@gguf-q4_0", "path": str(folder)}]
    for chosen in ("maker--tiny-gguf", "maker--tiny-gguf@gguf-q4_0"):
        (shown,) = json.loads(octavo("models", "show", chosen, "--json")[1])["models"]
        assert (shown["repo"], shown["bytes"], shown["path"]) == ("maker/Tiny-GGUF", 300_000, str(folder))
    code, out, _ = octavo("models", "remove", "maker--tiny-gguf", "--variant", "GGUF Q4_0")
    assert code == 0 and out.startswith("maker--tiny-gguf@gguf-q4_0 is gone, 300.")
    assert not folder.exists()


def test_what_can_t_be_fetched(octavo: Octavo) -> None:
    for words, said in (
        (("maker/None",), "The hub has no maker/None"),
        (("a/b/c",), "a/b/c is no name of a repository: at the hub it is OWNER/NAME."),
        (("nonsense",), "There is no model 'nonsense'"),
        (("qwen3-0.6b", "--variant", "AWQ"), "There is no qwen3-0.6b@awq; there are qwen3-0.6b@bf16"),
        (("qwen3-0.6b", "--variant", "FP8"), "The hub has no Qwen/Qwen3-0.6B-FP8"),
    ):
        code, out, err = octavo("models", "pull", *words)
        assert (code, out) == (1, "") and said in err
    code, _, err = octavo("models", "remove", "qwen3-0.6b")
    assert code == 1 and "Nothing of qwen3-0.6b is on this machine" in err


def test_a_file_of_one_s_own(octavo: Octavo, tmp_path: Path) -> None:
    mine = write_tiny_gguf(tmp_path / "Mine.gguf", context_length=2048).path
    assert f"path: {mine}\n" in octavo("models", "show", str(mine))[1]
    assert octavo("models", "import", str(mine))[1].startswith("mine is used where it lies")
    line = octavo("models")[1].splitlines()[1]
    assert line.startswith("mine ") and line.endswith("  ready       fits")
    code, out, _ = octavo("models", "show", "mine")
    assert code == 0 and f"path: {mine}\n" in out and "state: ready" in out
    assert "name: Mine\n" in out and "context: 2,048\n" in out and "here: About " in out
    assert octavo("models", "remove", "mine")[1] == "mine is not listed any more; its file stays.\n"
    assert mine.exists()
    code, _, err = octavo("models", "import", str(tmp_path / "none"))
    assert code == 1 and "There is no file or folder" in err


def test_a_file_of_one_s_own_that_the_catalogue_lists(
    octavo: Octavo, starter_model: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "Mine.gguf"
    os.link(starter_model.resolve(), mine)
    id = "smollm2-135m@gguf-q4_1"
    assert octavo("models", "import", str(mine))[1].startswith(f"{id} is used where it lies")
    line = rf"{id} +135 M +98\.4 MB +GGUF Q4_1 +Apache-2\.0 +ready +(fits|recommended)$"
    assert re.match(line, octavo("models")[1].splitlines()[1])
    assert octavo("models", "pull", "smollm2-135m")[:2] == (0, f"smollm2-135m is ready: {mine}\n")
    for chosen in ("smollm2-135m", id):
        code, out, _ = octavo("models", "show", chosen)
        assert (
            code == 0 and out.startswith("SmolLM2 135M Instruct (smollm2-135m), ready") and " here\n" in out
        )
    assert octavo("models", "remove", id)[1] == f"{id} is not listed any more; its file stays.\n"


def test_while_octavo_runs_the_page_deletes(octavo: Octavo, tmp_path: Path) -> None:
    held = Instance(Home(tmp_path))
    code, _, err = octavo("models", "remove", "qwen3-0.6b")
    held.close()
    assert code == 1 and "Delete the model on its page Models, or end it first: `octavo quit`." in err


def test_a_link_is_as_large_as_what_it_leads_to(octavo: Octavo, tmp_path: Path) -> None:
    file = write_tiny_gguf(tmp_path / "tiny.gguf").path
    (tmp_path / "Linked.gguf").symlink_to(file)
    octavo("models", "import", str(tmp_path / "Linked.gguf"))
    size = in_words(file.stat().st_size)
    assert size in octavo("models")[1].splitlines()[1] and size in octavo("models", "show", "linked")[1]


def test_the_token(octavo: Octavo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hf_abcdefgh1234\n"))
    code, out, err = octavo("token")
    assert (code, out, err) == (0, f"The token is kept in {tmp_path / 'hub-token'}.\n", "")
    assert HubToken(Home(tmp_path).path)() == "hf_abcdefgh1234"
    assert octavo("token", "--forget")[1] == "There is no token any more.\n"
    assert HubToken(tmp_path)() is None
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert octavo("token")[::2] == (1, "octavo: No token was given.\n")
