"""The home folder, settings.toml with a sentence for each bad value, and what a process is given first."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import BadSettings
from app.models.catalogue import read_catalogue
from app.models.own_models import OwnModels
from app.settings import Home, load_settings, prepare_process
from engine import SamplingParams
from installer.errors import SetupError
from installer.starter import octavo_home


def write(tmp_path: Path, text: str) -> Home:
    (tmp_path / "settings.toml").write_text(text, "utf-8")
    return Home(tmp_path)


def test_a_user_who_is_not_there(tmp_path: Path) -> None:
    assert Home.find({"OCTAVO_HOME": "~nobody-has-this-name/x"}).path.name == "x"


def test_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(BadSettings, match=r"no home folder\. Set OCTAVO_HOME"):
        Home.find({})
    with pytest.raises(SetupError, match=r"no home folder\. Set OCTAVO_HOME"):
        octavo_home({})
    Home.find({"OCTAVO_HOME": str(tmp_path / "x")}).prepare()
    assert octavo_home({"OCTAVO_HOME": str(tmp_path / "x")}) == tmp_path / "x"


def test_without_a_file_all_is_default(tmp_path: Path) -> None:
    settings = load_settings(Home(tmp_path))
    assert (settings.model, settings.port, settings.system_prompt) == ("smollm2-135m", 8642, "")
    assert settings.engine.num_chats == 8 and settings.sampling == read_catalogue().sampling("smollm2-135m")


def test_the_file_counts_more_than_the_model_s_own_sampling(tmp_path: Path) -> None:
    own = read_catalogue().sampling("smollm2-135m")
    assert own.max_tokens == 1024 and own != SamplingParams()
    home = write(tmp_path, "[sampling]\nmax_tokens = 7\nseed = 1")
    assert load_settings(home).sampling == replace(own, max_tokens=7, seed=1)
    assert load_settings(home, model="/some/file.gguf").sampling == SamplingParams(max_tokens=7, seed=1)


def test_everything_can_be_set(tmp_path: Path) -> None:
    text = """
        model = "qwen2.5-coder-1.5b"
        port = 9000
        context_length = 4096
        num_chats = 2
        system_prompt = "Sei kurz. 简短"
        [sampling]
        temperature = 0
        top_k = 40
        seed = 7
        stop = ["###"]
        [engine]
        backend = "reference"
        threads = 2
    """
    settings = load_settings(write(tmp_path, text))
    assert (settings.model, settings.port) == ("qwen2.5-coder-1.5b", 9000)
    assert settings.system_prompt == "Sei kurz. 简短"
    assert (settings.engine.context_length, settings.engine.num_chats) == (4096, 2)
    assert (settings.engine.backend, settings.engine.threads) == ("reference", 2)
    assert settings.sampling.stop == ("###",)
    assert (settings.sampling.temperature, settings.sampling.top_k, settings.sampling.seed) == (0, 40, 7)


def test_what_was_given_counts_more_than_the_file(tmp_path: Path) -> None:
    home = write(tmp_path, 'model = "a"\nport = 9000')
    assert load_settings(home, model="b", port=None).model == "b"
    assert load_settings(home, model=None, port=None).port == 9000
    with pytest.raises(BadSettings, match=r"^port is 0; it must"):  # the file is not blamed for it
        load_settings(home, port=0)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("port = 0", "port", "0"),
        ("port = 70000", "port", "70000"),
        ('port = "8642"', "port", "8642"),
        ("port = true", "port", "True"),
        ("port = 80.0", "port", "80.0"),
        ("num_chats = 0", "num_chats", "0"),
        ("model = 3", "model", "3"),
        ("prot = 3", "prot", "3"),
        ('"a\\nb" = 3', "'a\\nb' = 3 is not", "3"),
        ('"" = 3', "'' = 3 is not", "3"),
        ("sampling = 3", "sampling", "3"),
        ("[sampling]\ntemperature = -1", "temperature", "-1"),
        ("[sampling]\ntemperature = nan", "temperature", "nan"),
        ('[sampling]\ntemperature = "hot"', "sampling.temperature", "hot"),
        (f"[sampling]\ntop_k = 1{'0' * 400}", "top_k", "10,000,"),
        (f"[sampling]\ntop_k = -1{'0' * 400}", "top_k", "-10,000,"),
        (f"[sampling]\ntemperature = 1{'0' * 400}", "temperature", "10,000,"),
        (f"[engine]\nthreads = 1{'0' * 400}", "threads", "10,000"),
        ("[sampling]\nheat = 1", "sampling.heat", "1"),
        ("[sampling]\nstop = [1]", "sampling.stop", "1"),
        ("[sampling]\nmax_tokens = 0", "max_tokens", "0"),
        ("[engine]\nthreads = 1.5", "engine.threads", "1.5"),
        ("[engine]\ncontext_length = 5", "engine.context_length", "5"),
        ("[engine]\nblock_size = 24", "block_size", "24"),
        ("[engine]\nthreads = 0", "threads", "0"),
        ('[engine]\nbackend = "cuda"', "backend", "cuda"),
    ],
)
def test_a_bad_value_is_named_and_the_file_left_alone(
    tmp_path: Path, text: str, key: str, value: str
) -> None:
    home = write(tmp_path, text)
    with pytest.raises(BadSettings) as raised:
        load_settings(home)
    said = str(raised.value)
    assert str(home / "settings.toml") in said and key in said and value in said
    assert (home / "settings.toml").read_text("utf-8") == text


def test_what_is_too_small_counts_as_the_least(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = write(tmp_path, "context_length = 257\n[engine]\nkv_pool_bytes = 1000001")
    engine = [load_settings(home) for _ in range(3)][-1].engine
    assert (engine.context_length, engine.kv_pool_bytes) == (512, 2**24)
    assert [record.getMessage()[:25] for record in caplog.records] == [
        "context_length is 257; it",
        "kv_pool_bytes is 1000001;",
    ]


def test_what_the_file_says_alone(tmp_path: Path) -> None:
    home = write(tmp_path, "port = 9000\n[sampling]\ntop_k = 5")
    OwnModels(tmp_path).keep("smollm2-135m", context=1024, system_prompt="Brief.")
    assert load_settings(home).engine.context_length == 1024
    alone = load_settings(home, by_model=False)
    assert (alone.engine.context_length, alone.system_prompt) == (None, "")
    assert (alone.port, alone.sampling) == (9000, SamplingParams(top_k=5))


def test_an_unknown_name_is_answered_with_all_that_there_are(tmp_path: Path) -> None:
    known = (
        r"There are model, port, system_prompt, .*, context_length, num_chats, \[sampling\], \[engine\]\.$"
    )
    with pytest.raises(BadSettings, match=known):
        load_settings(write(tmp_path, "prot = 3"))


def test_an_editor_s_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_bytes(b"\xef\xbb\xbfport = 9000")
    assert load_settings(Home(tmp_path)).port == 9000


@pytest.mark.parametrize("content", [b"port = ", b"\xff\xfe", b"[[[", b"a = " + b"[" * 9999])
def test_a_file_that_is_no_toml(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "settings.toml").write_bytes(content)
    with pytest.raises(BadSettings, match=r"settings\.toml can't be read"):
        load_settings(Home(tmp_path))


@pytest.mark.parametrize("key", ["[sampling]\nseed", "port", "prot", "[engine]\nthreads"])
@pytest.mark.parametrize("digits", ["1" * 5000, "0x" + "f" * 5000])
def test_numbers_of_5_000_digits(tmp_path: Path, key: str, digits: str) -> None:
    with pytest.raises(BadSettings, match=r"settings\.toml.*: Exceeds the limit"):
        load_settings(write(tmp_path, f"{key} = {digits}"))


def test_this_platform_s_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Home.find({"OCTAVO_HOME": "/data/octavo"}).path == Path("/data/octavo").absolute()
    empty = Home.find({"OCTAVO_HOME": "", "XDG_DATA_HOME": "/xdg", "LOCALAPPDATA": "/local"}).path
    assert empty == Path({"win32": "/local/Octavo"}.get(sys.platform, str(empty)))
    assert Home.find({}).path.is_relative_to(Path.home())


def test_folders_and_files_are_for_this_user_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "home é")
    (home.path / "models").mkdir(parents=True)  # an installer was here first
    home.path.chmod(0o755)
    environ: dict[str, str] = {}
    before = os.umask(0o022)
    try:
        prepare_process(home, environ)
        (home / "later").write_text("x")
    finally:
        os.umask(before)
    if os.name != "nt":
        folders = {
            stat.S_IMODE(path.stat().st_mode) for path in (home.path, *home.path.iterdir()) if path.is_dir()
        }
        assert folders == {0o700}
        assert stat.S_IMODE((home / "later").stat().st_mode) == 0o600


def test_the_environment_of_what_is_imported_later(tmp_path: Path) -> None:
    environ = {"GRADIO_SHARE": "true", "GRADIO_SERVER_NAME": "0.0.0.0", "NO_PROXY": "corp.example,localhost"}
    prepare_process(Home(tmp_path), environ)
    assert environ["GRADIO_ANALYTICS_ENABLED"] == "False" and environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert "GRADIO_SHARE" not in environ and "GRADIO_SERVER_NAME" not in environ
    assert environ["NO_PROXY"] == "corp.example,localhost,127.0.0.1,::1"
    assert environ["no_proxy"] == "localhost,127.0.0.1,::1"
    assert Path(environ["NUMBA_CACHE_DIR"]).is_relative_to(tmp_path / "cache" / "numba")
    assert environ["GRADIO_TEMP_DIR"] == str(tmp_path / "gradio")


FROM_A_THREAD = """
import ctypes, sys, threading
from pathlib import Path
from app.settings import Home, prepare_process

prepare_process(Home(Path(sys.argv[1])))
malloc, found = ctypes.CDLL(None).malloc, []
malloc.restype = ctypes.c_void_p
thread = threading.Thread(target=lambda: found.append(malloc(1000)))
thread.start()
thread.join()
maps = Path("/proc/self/maps").read_text().splitlines()
heap = [line.split()[0].split("-") for line in maps if line.endswith("[heap]")]
print(any(int(begin, 16) <= found[0] < int(end, 16) for begin, end in heap))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has a heap for each thread")
def test_every_later_thread_has_the_first_one_s_heap(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FROM_A_THREAD, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


def test_a_home_that_can_t_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadSettings, match="file is a file; it must be a folder"):
        Home(tmp_path / "file").prepare()
    with pytest.raises(BadSettings, match="can't be used"):
        Home(tmp_path / "file" / "home").prepare()
