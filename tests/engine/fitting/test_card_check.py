"""A card is used once each kernel was right on it: checked at its first use, not again, and never believed
after a check that failed, broke off or hung.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.config import EngineConfig
from engine.errors import BadRequest
from engine.fitting import card_check, device, placement
from engine.fitting.abilities import PROCESSOR, Card
from engine.fitting.card_check import NAME, check, fault_of

GIB = 2**30
CARD = Card("cuda", "A Gaming Card", 8 * GIB, 7 * GIB, (8, 6))
WRONG = "its check found these to be wrong: draws (off by 3)"


def never() -> str:
    raise AssertionError("checked once more")


def test_a_verdict_is_kept(tmp_path: Path) -> None:
    assert fault_of(CARD, None, tmp_path) == ""  # nothing is known: nothing is held against it
    assert fault_of(CARD, lambda: WRONG, tmp_path) == WRONG
    assert fault_of(CARD, never, tmp_path) == WRONG == fault_of(CARD, None, tmp_path)


@pytest.mark.parametrize("change", ["card", "driver", "torch", "kernels", "compiler"])
def test_what_it_depends_on(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_check, "DRIVER", tmp_path / "driver")
    (tmp_path / "driver").write_text("NVRM version: 575.1\nGCC version: 12\n")
    assert fault_of(CARD, lambda: WRONG, tmp_path) == WRONG
    card = CARD
    if change == "card":
        card = Card("cuda", "Another", 8, 8, (8, 6))
    elif change == "driver":
        (tmp_path / "driver").write_text("NVRM version: 580.2\nGCC version: 12\n")
    elif change == "torch":
        monkeypatch.setattr(card_check, "version", lambda name: "9.9")
    elif change == "compiler":
        monkeypatch.setattr(card_check, "_compiler", lambda: "another")
    else:
        (tmp_path / "triton").mkdir()
        (tmp_path / "triton" / "a.py").write_text("x = 1")
        monkeypatch.setattr(card_check, "kernels", SimpleNamespace(__path__=[str(tmp_path)]))
    assert fault_of(card, lambda: "", tmp_path) == ""
    assert len(json.loads((tmp_path / NAME).read_text())) == 2


def test_a_card_that_others_had_filled_is_checked_again(tmp_path: Path) -> None:
    full = "its check broke off (torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 MiB)"
    assert fault_of(CARD, lambda: full, tmp_path) == full
    assert fault_of(CARD, lambda: "", tmp_path) == "" == fault_of(CARD, never, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_damaged_file_is_made_anew(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    assert fault_of(CARD, lambda: WRONG, tmp_path) == WRONG
    assert fault_of(CARD, never, tmp_path) == WRONG


def test_a_folder_that_cannot_be_written_to_costs_another_check(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert fault_of(CARD, lambda: WRONG, tmp_path / "file") == WRONG


@pytest.mark.parametrize(
    "code,said",
    [
        ("print('compiling'); print('')", ""),
        (f"print({WRONG!r})", WRONG),
        ("import os; os._exit(9)", "its check broke off (exit code 9)"),
        ("raise RuntimeError('no kernel image')", "its check broke off (RuntimeError: no kernel image)"),
        ("import os; os.abort()", "its check broke off"),
        ("import time; time.sleep(60)", "its check did not end within 2 s"),
    ],
    ids=["sound", "wrong", "ends", "raises", "crashes", "hangs"],
)
def test_the_check_is_a_process_of_its_own(code: str, said: str) -> None:
    assert check(2 if "sleep" in code else 60, code).startswith(said)


@pytest.fixture
def gaming(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A machine with a card, whose checks give what the list says, the last first."""
    verdicts = list[str]()
    monkeypatch.setattr(device, "has_driver", lambda: True)
    monkeypatch.setattr(device, "read_cards", lambda: [CARD])
    monkeypatch.setattr(device, "check", lambda: verdicts.pop())
    monkeypatch.setattr(card_check, "cache_folder", lambda: tmp_path)
    return verdicts


MODEL = SimpleNamespace(borrowed=None)


@pytest.fixture
def selected(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """What kernels are asked for."""
    asked = list[tuple]()
    monkeypatch.setattr(placement.kernels, "select", lambda *given, **more: asked.append((*given, more)))
    return asked


def test_a_card_serves_without_being_asked_for(gaming: list[str], selected: list[tuple]) -> None:
    """Checked at the first time, which is told before."""
    gaming.append("")
    told = list[int]()
    for _ in range(2):
        tell = lambda: told.append(len(gaming))  # noqa: E731
        facts, _ops = placement.place(EngineConfig(threads=3), MODEL, tell)  # type: ignore[arg-type]
        assert (facts.kind, facts.memory_available) == ("cuda", 7 * GIB)
    assert selected == [("cuda", "auto", {})] * 2 and told == [1]


def test_a_card_that_fails_its_check_leaves_the_processor(gaming: list[str], selected: list[tuple]) -> None:
    """With the reason, also for whoever only looks."""
    assert device.detect().kind == "cuda"  # nobody has checked yet
    gaming.append(WRONG)
    facts, _ops = placement.place(EngineConfig(), MODEL)  # type: ignore[arg-type]
    assert facts.kind == PROCESSOR and facts.reason.endswith(f"A Gaming Card is not used: {WRONG}.")
    assert device.detect().reason == facts.reason
    assert [given[:2] for given in selected] == [("cpu", "auto")]


@pytest.mark.parametrize("backend,kind", [("triton", "cuda"), ("numba", PROCESSOR), ("reference", PROCESSOR)])
def test_a_backend_that_is_named_is_not_checked(
    backend: str, kind: str, gaming: list[str], selected: list[tuple]
) -> None:
    facts, _ops = placement.place(EngineConfig(backend=backend), MODEL)  # type: ignore[arg-type]
    assert facts.kind == kind
    assert selected[0][:2] == ("cuda" if kind == "cuda" else "cpu", backend)


def test_triton_needs_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "has_driver", lambda: False)
    with pytest.raises(BadRequest, match="needs a card of NVIDIA or AMD; none is seen"):
        placement.place(EngineConfig(backend="triton"), MODEL)  # type: ignore[arg-type]


def test_without_a_driver_nobody_looks_for_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "DRIVERS", ("/nowhere/at/all",))
    monkeypatch.setattr(device, "read_cards", never)
    assert device.detect(check=True).kind == PROCESSOR
