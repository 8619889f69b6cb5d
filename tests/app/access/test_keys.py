"""The installation's secrets: private, the same at every start, and links that open the page once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.access.keys import LINK_LIFE_S, Keys, Links
from app.errors import AppError
from app.settings import Home
from tests.source_tree import ROOT

SECOND = 10**9


def token(link: str) -> str:
    return link.partition("?t=")[2]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(Home(tmp_path))


def test_they_stay_the_same_and_are_private(keys: Keys, tmp_path: Path) -> None:
    again = Keys(Home(tmp_path))
    assert (again.api_key, again.session(80), again.api_owner) == (
        keys.api_key,
        keys.session(80),
        keys.api_owner,
    )
    assert again.derive("x") == keys.derive("x") != keys.derive("y")
    assert len(keys.api_key) > 40 and keys.session(80) != keys.session(81)
    assert {path.name for path in tmp_path.iterdir()} == {"secret", "key"}
    if os.name != "nt":
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    with pytest.raises(AppError, match="key can't be read"):
        Keys(Home(tmp_path))


def test_another_home_has_others(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Keys(Home(tmp_path / "other"))
    assert other.api_key != keys.api_key and other.session(80) != keys.session(80)


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from app.settings import Home; "
    code += "from app.access.keys import Keys; "
    code += "keys = Keys(Home(Path(sys.argv[1]))); print(keys.api_key, keys.session(1))"

    def start(_: int) -> bytes:
        return subprocess.check_output([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(start, range(4)))) == 1


@pytest.mark.parametrize(("name", "content"), [("secret", b""), ("secret", b"short"), ("key", b"")])
def test_a_damaged_one_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    Keys(Home(tmp_path))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AppError, match=rf"{name} is damaged"):
        Keys(Home(tmp_path))


def test_a_link_works_once(keys: Keys) -> None:
    links = Links(keys, 8642)
    link = keys.link(8642)
    assert link.startswith("http://127.0.0.1:8642/enter?t=")
    assert [links.redeem(token(link)) for _ in range(3)] == [True, False, False]
    assert links.redeem(token(keys.link(8642)))


def test_a_link_dies_after_a_minute(keys: Keys) -> None:
    links, now = Links(keys, 1), time.time_ns()
    later = now + (LINK_LIFE_S + 1) * SECOND
    assert not links.redeem(token(keys.link(1, now)), later)
    assert links.redeem(token(keys.link(1, now)), now + (LINK_LIFE_S - 1) * SECOND)
    assert not links.redeem(token(keys.link(1, later)), now)  # from the future


def test_a_link_works_after_the_clock_was_set_back(keys: Keys) -> None:
    links, now = Links(keys, 1), time.time_ns() - 7200 * SECOND
    link = token(keys.link(1, now))
    assert [links.redeem(link, now + SECOND) for _ in range(2)] == [True, False]
    assert not links.redeem(token(keys.link(1, now)), now + (LINK_LIFE_S + 1) * SECOND)


def test_a_link_made_before_a_restart_is_dead(keys: Keys) -> None:
    link = keys.link(1)
    assert not Links(keys, 1).redeem(token(link))


def test_another_s_link(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    links, other = Links(keys, 1), Keys(Home(tmp_path / "other"))
    good = token(keys.link(1))
    bad = [
        token(keys.link(2)),
        token(other.link(1)),
        "",
        ".",
        "..",
        "1.2.3",
        good[:-1],
        "é" + good,
        "9" + good,
    ]
    assert not any(links.redeem(each) for each in bad)
    assert links.redeem(good)


def test_a_hundred_clients_with_one_link(keys: Keys) -> None:
    links, link = Links(keys, 1), token(keys.link(1))
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: links.redeem(link), range(100))) == 1
