"""Files of this user alone: whole or not at all, whoever writes them and however a writer ends."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.private_files import DRAFT_S, write_private


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_is_written_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "note"
    file.write_bytes(b"old")
    file.chmod(0o644)
    write_private(file, b"new\r\n\x00")
    assert file.read_bytes() == b"new\r\n\x00" and names(tmp_path) == ["note"]
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_without_replacing_the_first_one_stays(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write_private(file, b"%d" % number, replace=False), range(8)))
    first = file.read_bytes()
    write_private(file, b"other", replace=False)
    assert file.read_bytes() == first and names(tmp_path) == ["key"]


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool) -> None:
    def refuse(*paths: Path) -> None:
        raise OSError("there are none")

    monkeypatch.setattr(os, "link", refuse)
    write_private(tmp_path / "key", b"mine", replace)
    assert (tmp_path / "key").read_bytes() == b"mine" and names(tmp_path) == ["key"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "real")
    write_private(tmp_path / "link", b"kept")
    assert (tmp_path / "link").is_symlink() and names(tmp_path / "elsewhere") == ["real"]


def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "note"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(file, b"new")
    assert file.read_bytes() == b"old" and names(tmp_path) == ["note"]


def test_a_killed_writer_s_draft_goes_and_one_that_is_being_written_stays(tmp_path: Path) -> None:
    for name, age in ((".note.ab.draft", DRAFT_S + 9), (".note.cd.draft", 0), (".other.ef.draft", 999)):
        (tmp_path / name).write_bytes(b"half")
        written = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (written, written))
    write_private(tmp_path / "note", b"whole")
    assert names(tmp_path) == [".note.cd.draft", ".other.ef.draft", "note"]
