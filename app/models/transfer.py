"""One file over HTTP, resumed where it was left: by Range and If-Range, a checked 206, its hash at the end.

    name.part   what has come so far       name.etag   what the server called that version of the file
    name        all of it, checked
Pieces are put together only where the server vouches that they are of one version; else the file begins
anew. A redirect is followed only to the hub's own places, and the token goes to the hub alone. What is
cut off is asked for again by itself, a few times where nothing comes. Knows no models.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from engine import in_words

from ..errors import PullFailed

if TYPE_CHECKING:
    from httpx import Client, Response

CHUNK = 2**20
CONNECT_S, SILENT_S = 20, 30  # to be connected, and without a byte
WAITS_S = (1.0, 4.0, 10.0)  # before a file is asked for again from which nothing came
PATIENT_S = 60  # the longest wait that a server may ask for
REDIRECTS = 5
OWN_PLACES = (".huggingface.co", ".hf.co")  # where the hub keeps large files
# status -> what the person is told; {repo} {file} {status}
REFUSALS = {
    401: "The hub does not show {repo} to everyone (401): it is gated or private. Give Octavo a token of the "
    "Hugging Face hub that may read it.",
    403: "{repo} is gated (403): accept its terms on its page at the hub, with the account that your token "
    "is of, then try again.",
    404: "The hub has no {file} in {repo} any more (404).",
}

Tell = Callable[[str, int], None]  # what is being done with a file, and how many of its bytes are done


@dataclass(frozen=True, slots=True)
class Part:
    """A file to fetch. `digest`: a SHA-256, or the 40 digits by which git names a small file."""

    name: str
    url: str
    bytes: int
    digest: str


class Cut(Exception):
    """Less came than was to come: worth asking again, after `wait` seconds if the server said so."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class Transfer:
    """Fetches files of one repository into one folder. `endpoint` is the hub's address."""

    def __init__(
        self, repo: str, endpoint: str, token: str | None, waits: tuple[float, ...] = WAITS_S
    ) -> None:
        import httpx

        self._repo, self._endpoint, self._token, self._waits = repo, urlsplit(endpoint), token, waits
        limits = httpx.Timeout(SILENT_S, connect=CONNECT_S)
        # proxies and certificates as the person's environment has them
        self._client: Client = httpx.Client(timeout=limits, headers={"Accept-Encoding": "identity"})

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def fetch(self, part: Part, folder: Path, tell: Tell) -> None:
        """Bring a file into the folder, whole and checked. `tell` may raise, to stop: what came stays."""
        whole, draft = folder / part.name, folder / f"{part.name}.part"
        if whole.exists() and _size(whole) == part.bytes:  # it was checked before it got this name
            return
        tries, most = 0, _size(draft)
        while _size(draft) < part.bytes or not draft.exists():
            try:
                self._receive(part, draft, tell)
            except Cut as cut:
                # more than ever before: what came again after a new beginning is no progress
                tries = 0 if _size(draft) > most else tries + 1
                most = max(most, _size(draft))
                if tries > len(self._waits) or cut.wait > PATIENT_S:
                    have, all_ = in_words(_size(draft)), in_words(part.bytes)
                    sentence = f"{part.name} did not come: {cut} What is here stays: {have} of {all_}."
                    raise PullFailed(sentence) from cut
                if tries:
                    _sleep(max(self._waits[tries - 1], cut.wait), lambda: tell("waiting", _size(draft)))
        _check(part, draft, tell)
        os.replace(draft, whole)
        draft.with_suffix(".etag").unlink(missing_ok=True)

    def _receive(self, part: Part, draft: Path, tell: Tell) -> None:
        """Everything from where the draft ends; or from the start, where the server won't continue it."""
        import httpx

        note = draft.with_suffix(".etag")
        have, etag = _size(draft), note.read_text("utf-8") if note.exists() else ""
        resume = {"Range": f"bytes={have}-", "If-Range": etag} if have and etag else {}
        try:
            with self._open(part, resume) as response:
                have = have if self._continues(part, response, have, draft) else 0
                etag = response.headers.get("etag", "")
                note.write_text("" if etag.startswith("W/") else etag, "utf-8")  # weak ones vouch for nothing
                with open(draft, "r+b" if have else "wb", CHUNK) as file:
                    file.seek(have)
                    for chunk in response.iter_raw():
                        have += len(chunk)
                        if have > part.bytes:
                            break
                        file.write(chunk)
                        tell("fetching", have)
                    file.flush()
                    os.fsync(file.fileno())
        except httpx.TimeoutException as error:
            raise Cut(f"nothing came for {SILENT_S} s.") from error
        except httpx.HTTPError as error:
            raise Cut(f"the connection was lost ({_reason(error)}).") from error
        if have > part.bytes:
            draft.unlink()
            raise PullFailed(f"The hub sends more than the {part.bytes} bytes that {part.name} has.")
        if have < part.bytes:
            raise Cut("the connection was lost.")

    def _continues(self, part: Part, response: Response, have: int, draft: Path) -> bool:
        """Whether the answer goes on after `have` bytes; False: it is the whole file."""
        status, span = response.status_code, response.headers.get("content-range", "")
        if status == 206 and have and span == f"bytes {have}-{part.bytes - 1}/{part.bytes}":
            return True
        if status in (206, 416):  # what is here is no beginning of what is there
            draft.unlink(missing_ok=True)
            raise Cut(f"the hub was asked for bytes from {have} on and answered {status} {span!r}.")
        if status != 200:
            raise self._refusal(part, response)
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length) != part.bytes:
            raise PullFailed(f"{part.name} has {length} bytes at the hub instead of {part.bytes}.")
        return False

    def _refusal(self, part: Part, response: Response) -> Exception:
        status = response.status_code
        if status in REFUSALS:
            return PullFailed(REFUSALS[status].format(repo=self._repo, file=part.name))
        after = response.headers.get("retry-after", "")
        wait = float(after) if after.isdecimal() else 0.0
        if status == 429:
            return Cut(f"the hub asks to wait{f' {after} s' if wait else ''} (429, too many requests).", wait)
        if status >= 500:
            return Cut(f"the hub answered {status}.", wait)
        return PullFailed(f"The hub answered {status} when it was asked for {part.name}.")

    @contextmanager
    def _open(self, part: Part, headers: dict[str, str]) -> Iterator[Response]:
        """The answer behind all redirects."""
        url = part.url
        for _ in range(REDIRECTS + 1):
            own = _origin(url) == self._endpoint[:2]
            if not own and not _is_own_place(url):
                raise PullFailed(
                    f"The hub sends {part.name} on to {urlsplit(url).hostname}, which is none of its own "
                    "places. Nothing was fetched from there."
                )
            secret = {"Authorization": f"Bearer {self._token}"} if own and self._token else {}
            with self._client.stream("GET", url, headers={**headers, **secret}) as response:
                if response.status_code not in (301, 302, 303, 307, 308):
                    yield response
                    return
                url = urljoin(url, response.headers.get("location", ""))
        raise PullFailed(f"The hub sent the request for {part.name} on {REDIRECTS + 1} times, to no end.")


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url)[:2]


def _is_own_place(url: str) -> bool:
    place = urlsplit(url)
    return place.scheme == "https" and (place.hostname or "").endswith(OWN_PLACES)


def _reason(error: Exception) -> str:
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".") or type(error).__name__


def _sleep(seconds: float, tell: Callable[[], None]) -> None:
    """Wait, but not for someone who wants to stop."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        tell()
        time.sleep(min(0.2, left))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check(part: Part, draft: Path, tell: Tell) -> None:
    """Raises PullFailed, and deletes the draft, if it is not the file that was to come."""
    git = len(part.digest) == 40
    found, done = hashlib.sha1(b"blob %d\0" % part.bytes) if git else hashlib.sha256(), 0
    with open(draft, "rb", buffering=0) as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
            done += len(chunk)
            tell("checking", done)
    if found.hexdigest() != part.digest:
        draft.unlink()
        kind = "git id" if git else "SHA-256"
        raise PullFailed(
            f"{part.name} came with the {kind} {found.hexdigest()} instead of {part.digest}. It was thrown "
            "away; try again."
        )
