"""The page that says why Octavo stays off: private, and only text."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer import trouble


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser was asked to open."""
    asked = list[str]()
    monkeypatch.setattr(trouble.webbrowser, "open", asked.append)
    return asked


def test_what_it_says(tmp_path: Path, opened: list[str]) -> None:
    page = tmp_path / "trouble.html"
    page.write_text("what was wrong the last time")
    trouble.show_trouble(tmp_path, "It crashed.", "".join(f"line {n} <script>\n" for n in range(99)))
    text = page.read_text(encoding="utf-8")
    assert opened == [page.as_uri()] and page.stat().st_mode & 0o777 == 0o600
    assert "It crashed." in text and str(tmp_path) in text and "octavo doctor" in text
    assert "line 98 &lt;script&gt;" in text and "line 79 " in text and "line 78 " not in text
    assert "<script" not in text and "the last time" not in text


def test_where_nothing_was_said(tmp_path: Path, opened: list[str]) -> None:
    trouble.show_trouble(tmp_path, "It crashed.", "\n")
    assert "It said nothing." in (tmp_path / "trouble.html").read_text()
