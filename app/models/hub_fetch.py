"""One variant from the hub, from the first question to the folder that can be loaded.

    models/<id>/.<variant>.lock          held while somebody fetches
    models/<id>/.<variant>.draft/        octavo.json (what is to come, written first), urls.json, the files
    models/<id>/<variant>/               the draft under its name, once every file in it was checked
The draft outlives pause, crash and power cut; the next try goes on with the same revision.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine import in_words

from ..access.instance import FileLock
from ..errors import PullFailed
from ..progress import Progress
from .catalogue import Model, Variant
from .disk import check_room
from .hub_client import Hub
from .hub_files import parts
from .ids import slug
from .installed import RECORD, Record, make_record, read_record, write_record
from .model_store import ModelStore, bytes_in
from .transfer import Part

URLS = "urls.json"


class HubFetch:
    """A download that can be run, stopped by what `progress` raises, and run again, in this process or
    another.
    """

    def __init__(self, store: ModelStore, hub: Hub, model: Model, variant: Variant, quota: int = 0) -> None:
        assert variant.repo
        self._store, self._hub, self.model, self.variant, self._quota = store, hub, model, variant, quota
        self.folder = store.folder / model.id / slug(variant.format)
        self.draft = self.folder.with_name(f".{self.folder.name}.draft")
        self.bytes = variant.bytes or model.facts().bytes_in(variant.format)  # of all; until known, about

    @property
    def have(self) -> int:
        """The bytes that are here already."""
        files = (path for path in self.draft.glob("*") if path.name not in (RECORD, URLS))
        return sum(bytes_in(path) for path in files if path.suffix != ".etag")

    def run(self, progress: Progress) -> Path:
        """Fetch what is missing; the folder. Raises PullFailed or HubFailed, with what to do."""
        if self.folder.exists():
            return self._store.find(f"{self.model.id}@{self.folder.name}").path
        try:
            with self._alone():
                if self.folder.exists():  # another process was faster
                    return self.folder
                record, missing = self._plan()
                self.bytes = record.bytes
                check_room(self._store, record.name, record.bytes - self.have, self._quota)
                self._fetch(record, missing, progress)
                os.replace(self.draft, self.folder)
                (self.folder / URLS).unlink(missing_ok=True)
        except OSError as error:
            raise PullFailed(self._why(error)) from error
        return self.folder

    def discard(self) -> int:
        """Throw away what has come; how many bytes that was."""
        freed = self.have
        try:
            with self._alone():
                shutil.rmtree(self.draft)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise PullFailed(f"{self.draft} can't be deleted: {error.strerror}.") from error
        return freed

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = FileLock(self.folder.with_name(f".{self.folder.name}.lock"))
        except BlockingIOError as error:
            raise PullFailed(f"Another process is fetching {self.model.id}.") from error
        try:
            yield
        finally:
            lock.close()

    def _plan(self) -> tuple[Record, tuple[Part, ...]]:
        """What is to come: as the draft has it, or the hub now."""
        record = read_record(self.draft)
        try:
            urls = json.loads((self.draft / URLS).read_text("utf-8"))
            if record and record.id == self.model.id:
                return record, tuple(Part(name, urls[name], size, sha) for name, size, sha in record.files)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        shutil.rmtree(self.draft, ignore_errors=True)
        info = self._hub.look(self.variant.repo)
        made = parts(self._hub, info, self.variant)
        files = tuple((part.name, part.bytes, part.digest) for part in made)
        record = make_record(self.model, self.variant.format, info.id, info.sha or "", files)
        self.draft.mkdir(mode=0o700)
        (self.draft / URLS).write_text(json.dumps({part.name: part.url for part in made}), "utf-8")
        write_record(self.draft, record)
        return record, made

    def _fetch(self, record: Record, wanted: tuple[Part, ...], progress: Progress) -> None:
        transfer, done, total = self._hub.transfer(record.repo), 0, max(1, record.bytes)
        try:
            for part in wanted:

                def tell(stage: str, size: int, before: int = done) -> None:
                    progress(stage, (before + size) / total)

                transfer.fetch(part, self.draft, tell)
                done += part.bytes
        finally:
            transfer.close()

    def _why(self, error: OSError) -> str:
        """A sentence for what the disk said."""
        if not self._store.folder.is_dir() or not self.draft.exists():
            return (
                f"{self.draft} was taken away while {self.model.id} was fetched. Try again: it starts anew."
            )
        free = in_words(shutil.disk_usage(self._store.folder).free)
        return (
            f"{self.model.id} could not be written to {self.draft}: {error.strerror} ({free} are free, "
            f"{in_words(max(0, self.bytes - self.have))} are still to come). What has come stays."
        )
