"""The bundle for somebody who helps: it says what is wanted, and none of the secrets that were planted."""

from __future__ import annotations

import getpass
import io
import json
import logging
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.about.diagnostics import ABOUT, cut_paths, harmless, make_bundle
from app.about.licences import installed_licences, licence_texts
from app.access.keys import Keys
from app.errors import AppError
from app.faults import explain, keep_log
from app.memory.runtime import Runtime
from app.models.catalogue import read_catalogue
from app.models.model_store import ModelFile, ModelStore
from app.models.tokens import HubToken
from app.settings import Home, Settings
from tests.app.fakes import FakeModel, fake_loader, make_home, model_file

CHAT = "my sister Adelheid has moved to Quito"
TOKEN = "hf_Zq8mWx3vTn5rKd7pLs2aYb4c"
PROXY = "http://adelheid:open-sesame@proxy.example:3128"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home in a folder whose name says who the person is, with a log of its own."""
    before = logging.getLogger().handlers[:]
    home = make_home(tmp_path / "Adelheid Quispe")
    keep_log(home / "octavo.log")
    yield home
    for handler in set(logging.getLogger().handlers) - set(before):
        logging.getLogger().removeHandler(handler)
        handler.close()


def plant(home: Home, keys: Keys) -> None:
    """Write into the log what must not come out of it."""
    try:
        raise ValueError(f"{CHAT}\nand so on: {CHAT}")
    except ValueError as error:
        explain("The request failed", error)
    logging.getLogger("some.library").warning("while reading %s: %s", home.path, CHAT)
    logging.warning("%s", CHAT)
    logging.getLogger("octavo.engine").warning("The packed weights at %s/x are gone", home.path)
    logging.getLogger("octavo.engine").warning("key %s, %s, Bearer abc123", keys.api_key, TOKEN)
    logging.getLogger("octavo").warning("cookie %s", keys.session(8642))


def texts(packed: bytes) -> dict[str, str]:
    archive = zipfile.ZipFile(io.BytesIO(packed))
    return {name: archive.read(name).decode() for name in archive.namelist()}


def test_no_secret_comes_out(home: Home) -> None:
    keys = Keys(home)
    HubToken(home.path, use_keyring=False).keep(TOKEN)
    settings = Settings(home, model=str(model_file(home)), system_prompt=CHAT, proxy=PROXY, keep_alive=5)
    models = ModelStore(home, read_catalogue())
    runtime = Runtime(settings, models, b"", fake_loader(FakeModel()))
    runtime.start()
    runtime.wait()
    plant(home, keys)
    found = texts(make_bundle(settings, keys, runtime))
    everything = "\n".join(found.values())
    secrets = [keys.api_key, keys.session(8642), TOKEN, "open-sesame", "abc123", CHAT, str(home.path)]
    secrets += [(home / name).read_text().strip() for name in ("secret", "key", "hub-token")]
    secrets += ["Adelheid", "Quito", os.path.expanduser("~") + os.sep, f"{os.sep}{getpass.getuser()}{os.sep}"]
    assert [secret for secret in secrets if secret in everything] == []
    about = json.loads(found["about.json"])
    assert about["status"]["state"] == "ready" and about["versions"]["python"] and about["home"] == "<octavo>"
    assert "keep_alive = 5" in found["settings.txt"] and "system_prompt = (set)" in found["settings.txt"]
    assert "model = 'fake.gguf'" in found["settings.txt"]
    log = found["log.txt"]
    assert "ERROR octavo: The request failed" in log and "ValueError" in log and "some.library: …" in log
    assert "test_diagnostics.py:" in log and "The packed weights at <octavo>/x are gone" in log
    assert "gradio 6" in found["packages.txt"] and found["readme.txt"].startswith(ABOUT[:20])
    runtime.close()


def test_the_lines_of_a_log_that_are_kept() -> None:
    lines = [
        "2026-11-30 10:00:00,123 ERROR octavo: The request failed",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.11/site-packages/starlette/routing.py", line 12, in handle',
        "    raise ValueError(secret)",
        "app.errors.StoreError: what was said",
        "more of what was said",
        "2026-11-30 10:00:01,000 WARNING root: what was said",
    ]
    assert list(harmless(lines)) == [
        lines[0],
        lines[1],
        "  starlette/routing.py:12 handle",
        "app.errors.StoreError",
        "2026-11-30 10:00:01,000 WARNING root: …",
    ]


def test_every_package_has_a_licence() -> None:
    found = {each.name.lower(): each for each in installed_licences()}
    assert found["gradio"].licence and found["numpy"].version and found["torch"].licence
    assert len([each for each in found.values() if each.licence]) > 0.9 * len(found)
    assert "Redistribution" in licence_texts("numpy")


def test_a_folder_s_name_in_a_sentence_does_not_come_out(home: Home, tmp_path: Path) -> None:
    private = tmp_path / "Anna Schmidt private"
    private.mkdir()
    (private / "notes.gguf").write_bytes(b"GGUF")

    def load(file: ModelFile, *_: object) -> FakeModel:
        raise AppError(f"{file.path} is cut short.")

    settings, keys = Settings(home), Keys(home)
    runtime = Runtime(settings, ModelStore(home, read_catalogue()), b"", load)
    runtime.load(str(private / "notes.gguf"))
    assert "Schmidt" in runtime.wait().message
    logging.getLogger("octavo").warning("%s/notes.gguf is cut short", private)
    (home / "key").unlink()  # no error
    found = texts(make_bundle(settings, keys, runtime))
    runtime.close()
    assert "Schmidt" not in "".join(found.values()) and str(tmp_path) not in "".join(found.values())
    assert json.loads(found["about.json"])["status"]["message"] == "…/notes.gguf is cut short."
    assert "…/notes.gguf is cut short" in found["log.txt"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("/mnt/a b/c.gguf is gone", "…/c.gguf is gone"),
        (r"C:\\Users\\Anna B\\c.gguf is gone", "…/c.gguf is gone"),
        ("~/a b/c.gguf is gone", "…/c.gguf is gone"),
        ("<octavo>/models/a is gone", "<octavo>/models/a is gone"),
        ("5 tokens/s, and/or https://huggingface.co", "5 tokens/s, and/or https://huggingface.co"),
    ],
)
def test_paths_are_cut_to_their_last_part(said: str, shown: str) -> None:
    assert cut_paths(said) == shown
