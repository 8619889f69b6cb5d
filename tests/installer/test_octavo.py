"""The installed word: `uninstall` is the installer's, others the program's, with the chosen data folder."""

from __future__ import annotations

import pytest

from installer import commands, octavo
from installer.manifest import Manifest


def test_who_gets_which_word(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()
    monkeypatch.setattr(octavo, "mind_home", lambda path: asked.append(path.name))
    monkeypatch.setattr(octavo.runpy, "run_module", lambda name, **rest: asked.append((name, rest)))
    monkeypatch.setattr(commands, "main", lambda words: asked.append(words) or 3)
    assert octavo.main(["uninstall", "--data", "keep"]) == 3
    assert asked == [["uninstall", "--data", "keep"]]
    assert octavo.main(["uninstalled"]) == octavo.main([]) == 0
    program = ("ui", {"run_name": "__main__", "alter_sys": True})
    assert asked[1:] == ["installed.json", program] * 2


def test_in_a_checkout_nothing_was_chosen() -> None:
    assert not octavo.MANIFEST.exists() and Manifest().home == ""
