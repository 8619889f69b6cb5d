"""The tables of peers fit together; what is there already is used, what was interrupted is made anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.environments import FORMS, KITS, PEERS, SCRIPTS, kit_python, nearest_equal, peer_command


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands instead of running them; what would be written is."""
    told: list[list[str]] = []

    def run(command: list[str], variables: dict[str, str] | None = None) -> None:
        told.append(command)
        if command[1].startswith(str(SCRIPTS)):
            Path(command[-1]).write_text("made")

    def create(place: Path, **options: bool) -> None:
        place.mkdir(parents=True)

    monkeypatch.setattr(environments, "run", run)
    monkeypatch.setattr(environments.venv, "create", create)
    monkeypatch.setattr(environments, "ask", lambda build: None)
    return told


def test_every_peer_has_its_script_its_kit_and_its_form() -> None:
    for peer in PEERS.values():
        assert (SCRIPTS / peer.script).is_file() and peer.kit in KITS and (peer.form or "q4_0") in FORMS
    for form in FORMS.values():
        assert (SCRIPTS / form.script).is_file() and form.kit in KITS


def test_scripts_of_peers_import_nothing_of_ours() -> None:
    for script in SCRIPTS.glob("*.py"):
        lines = script.read_text(encoding="utf-8").splitlines()
        taken = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
        assert not taken & {"engine", "app", "kernels", "ui", "benchmarks", "installer", "tests", ""}


def test_an_environment_is_made_once(tmp_path: Path, runs: list[list[str]]) -> None:
    python = kit_python("vllm", tmp_path)
    assert python.parent.name == ("Scripts" if os.name == "nt" else "bin")
    words = [command[5:] for command in runs]
    assert [word[0] for word in words] == ["install", "install", "uninstall"]
    assert words[0][1].startswith("torch==")
    assert words[1][1:] == list(KITS["vllm"].packages)
    assert kit_python("vllm", tmp_path) == python
    assert len(runs) == 3


def test_an_environment_for_other_packages_is_made_anew(tmp_path: Path, runs: list[list[str]]) -> None:
    (tmp_path / "llama.cpp").mkdir()
    (tmp_path / "llama.cpp" / "octavo.ready").write_text("llama-cpp-python==0.1")
    with pytest.raises(FileExistsError):  # the fake `create` does not clear; the real one does
        kit_python("llama.cpp", tmp_path)


def test_a_model_is_converted_once_and_counts_from_its_rename(tmp_path: Path, runs: list[list[str]]) -> None:
    model = tmp_path / "a.Q4_K_M.gguf"
    made = nearest_equal(model, "q4_0", tmp_path)
    assert made == tmp_path / "models" / "a.Q4_K_M-Q4_0.gguf"
    assert made.read_text() == "made"
    count = len(runs)
    assert nearest_equal(model, "q4_0", tmp_path) == made
    assert len(runs) == count


def test_a_peer_takes_the_given_file_where_it_can(tmp_path: Path, runs: list[list[str]]) -> None:
    command = peer_command("llama.cpp", Path("m.gguf"), 2, tmp_path)
    assert command[1:] == [str(SCRIPTS / "llama.py"), "--model", "m.gguf", "--threads", "2"]
