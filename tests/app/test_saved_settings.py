"""settings.toml as a person changes it on the page: what stood there stays, what is wrong is not written."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.errors import BadSettings
from app.saved_settings import save_settings
from app.settings import Home, load_settings

WRITTEN = """\
# my settings
model = "smollm2-135m"   # small
port = 9000

[sampling]
temperature = 0.2 # calm
"""


def write(folder: Path, text: str) -> Home:
    (folder / "settings.toml").write_text(text, "utf-8")
    return Home(folder)


def test_comments_and_order_stay(tmp_path: Path) -> None:
    home = write(tmp_path, WRITTEN)
    changes = {"port": 9001, "keep_alive": 2.5, "engine.threads": 2, "sampling.temperature": None}
    settings = save_settings(home, changes)
    assert (settings.port, settings.keep_alive, settings.engine.threads) == (9001, 2.5, 2)
    text = (home / "settings.toml").read_text("utf-8")
    assert "# my settings\n" in text and '"smollm2-135m"   # small' in text and "temperature" not in text
    assert load_settings(home) == settings
    save_settings(home, {"engine.threads": None, "keep_alive": None, "never": None, "engine.nothing": None})
    assert load_settings(home).engine.threads is None and load_settings(home).keep_alive == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[engine]\nthreads = 2\n", ""),
        (
            "port = 9000\n\n[engine]\nthreads = 2\n\n[sampling]\ntop_k = 5\n",
            "port = 9000\n\n[sampling]\ntop_k = 5\n",
        ),
        ("engine = { threads = 2 }\n", ""),
        ("engine.threads = 2\n", ""),
        ("[engine]\n# mine\nthreads = 2\n", "[engine]\n# mine\n"),
        ("[engine]\nthreads = 2\nblock_size = 32\n", "[engine]\nblock_size = 32\n"),
    ],
)
def test_a_table_goes_with_its_last_setting(tmp_path: Path, before: str, after: str) -> None:
    home = write(tmp_path, before)
    save_settings(home, {"engine.threads": None})
    assert (home / "settings.toml").read_text("utf-8") == after


def test_the_first_one_makes_the_file(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert save_settings(home, {"system_prompt": 'Sei "kurz". 简短\n'}).system_prompt == 'Sei "kurz". 简短\n'
    assert load_settings(home).system_prompt == 'Sei "kurz". 简短\n'
    if os.name != "nt":
        assert stat.S_IMODE((home / "settings.toml").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("port", 70000, "^port is 70000; it must lie between 1 and 65535"),
        ("context_length", 256, "^context_length is 256; it must lie between 512 and 16,777,216"),
        ("engine.kv_pool_bytes", 5, "^engine.kv_pool_bytes is 5; it must lie between 16,777,216 and"),
        ("keep_alive", -1.0, "^keep_alive is -1.0; it must be minutes, from 0 to"),
        ("keep_free", float("nan"), "^keep_free is nan; it must be GB"),
        ("hub", "http://example.org", "^hub is 'http://example.org'; it must be an https address"),
        ("proxy", "socks://me:secret@x", "^proxy must be an address with a port"),
        ("engine.threads", 0, "threads"),
        ("sampling.temperature", 99.0, "^temperature is 99"),
        ("nonsense", 1, "^nonsense = 1 is not a setting"),
        ("system_prompt", "\ud800", "^system_prompt holds half a character"),
        ("system_prompt", "x" * 20_001, "^system_prompt has 20,001 characters; it may have 20,000"),
        ("models_quota", 10**400, "^models_quota is 10+; it must be GB, from 0 to 1,000,000"),
        ("hub", "https://a:99999", "^hub names the port 99999; it must lie between 1 and 65535"),
        ("proxy", "http://me:secret@a:99999", "^proxy names the port 99999; it must lie"),
        ("api", "yes", "^api is 'yes'; it must be true or false"),
    ],
)
def test_what_is_wrong_is_said_and_not_written(tmp_path: Path, name: str, value: object, said: str) -> None:
    home = write(tmp_path, WRITTEN)
    with pytest.raises(BadSettings, match=said) as raised:
        save_settings(home, {name: value})
    assert "secret" not in str(raised.value)
    assert (home / "settings.toml").read_text("utf-8") == WRITTEN


def test_a_file_that_can_t_be_read_is_left_alone(tmp_path: Path) -> None:
    home = write(tmp_path, "port = = 3")
    with pytest.raises(BadSettings, match=r"settings\.toml can't be read"):
        save_settings(home, {"port": 9000})
    assert (home / "settings.toml").read_text("utf-8") == "port = = 3"


def test_a_folder_that_can_t_be_written_to(tmp_path: Path) -> None:
    home = Home(tmp_path / "gone")
    with pytest.raises(BadSettings, match=r"settings\.toml can't be written"):
        save_settings(home, {"port": 9000})


@pytest.mark.parametrize(
    "text",
    [
        "engine = {threads = 2, max_num_seqs = 4} # keep me\n",
        "engine.threads = 2\nengine.max_num_seqs = 4 # keep me\n",
        "engine.threads = 2\nport = 9000\nengine.max_num_seqs = 4 # keep me\n[sampling]\nseed = 1\n",
        "[engine]\nthreads = 2\nmax_num_seqs = 4 # keep me\n",
    ],
)
def test_a_table_in_any_spelling_keeps_its_other_keys(tmp_path: Path, text: str) -> None:
    home = write(tmp_path, text)
    assert save_settings(home, {"engine.threads": 1}).engine.threads == 1
    assert (home / "settings.toml").read_text("utf-8") == text.replace("threads = 2", "threads = 1")
    save_settings(home, {"engine.threads": None})
    engine = load_settings(home).engine
    assert (engine.threads, engine.max_num_seqs) == (None, 4)


def test_saved_at_once_all_of_it_is_there(tmp_path: Path) -> None:
    home, changes = Home(tmp_path), {"port": 1234, "num_chats": 3, "keep_alive": 5.0, "api": False}
    for _ in range(10):
        (tmp_path / "settings.toml").unlink(missing_ok=True)
        with ThreadPoolExecutor(len(changes)) as pool:
            list(pool.map(lambda change: save_settings(home, dict([change])), changes.items()))
        assert len((tmp_path / "settings.toml").read_text().splitlines()) == len(changes)


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real = tmp_path / "elsewhere" / "mine.toml"
    real.write_text("# mine\n")
    (tmp_path / "settings.toml").symlink_to(real)
    save_settings(Home(tmp_path), {"port": 9001})
    assert (tmp_path / "settings.toml").is_symlink() and real.read_text() == "# mine\nport = 9001\n"
    assert [path.name for path in real.parent.iterdir()] == ["mine.toml"]


def test_a_file_that_is_not_to_be_changed_is_not(tmp_path: Path) -> None:
    home = write(tmp_path, WRITTEN)
    (home / "settings.toml").chmod(0o444)
    with pytest.raises(BadSettings, match="may only be read"):
        save_settings(home, {"port": 9001})
    assert (home / "settings.toml").read_text("utf-8") == WRITTEN
