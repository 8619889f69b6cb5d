"""A small model hub that speaks as the Hugging Face hub does, to its real client and to ours.

    /api/models                        a search
    /api/models/<repo>                 a repository, its files with sizes and hashes
    /<repo>/resolve/<revision>/<file>  a small file, or a redirect to a large one
    /cdn/<hash>                        a large file
`faults` harm what it says: by path, a function that is given the handler and answers in its stead.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from huggingface_hub import constants

from app.models.catalogue import Catalogue, Model, Variant

SMALL = 1000  # bytes up to which a file lies in git itself
Fault = Callable[["Handler"], None]


@dataclass
class Repo:
    """What the hub knows of a repository."""

    name: str
    files: dict[str, bytes]
    about: dict[str, Any] = field(default_factory=dict)
    gated: bool = False

    @property
    def revision(self) -> str:
        named = "".join(f"{name} {sha256(content)}" for name, content in sorted(self.files.items()))
        return hashlib.sha1(named.encode()).hexdigest()

    def info(self) -> dict[str, Any]:
        siblings = [self._file(name, content) for name, content in self.files.items()]
        known = {"id": self.name, "sha": self.revision, "private": False, "gated": self.gated and "auto"}
        return {**known, "downloads": 7, "siblings": siblings, **self.about}

    def _file(self, name: str, content: bytes) -> dict[str, Any]:
        git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        entry: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git}
        if len(content) > SMALL:
            entry["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 134}
        return entry


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class FakeHub(ThreadingHTTPServer):
    """`asked` is every request: (path, headers)."""

    daemon_threads = True
    token = ""  # that opens gated repositories

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[str, Repo] = {}
        self.faults: dict[str, Fault] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, repo: Repo) -> Repo:
        self.repos[repo.name] = repo
        return repo

    def paths(self, begin: str) -> list[str]:
        """The paths that were asked for and begin so."""
        return [path for path, _ in self.asked if path.startswith(begin)]

    def handle_error(self, request: Any, client_address: Any) -> None: ...


class Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        path = unquote(place.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((path, headers))
        if fault := self.server.faults.get(path):
            return fault(self)
        if path == "/api/models":
            return self._search(parse_qs(place.query))
        if path.startswith("/api/models/"):
            repo = self.server.repos.get(path.removeprefix("/api/models/"))
            return self.say(200, repo.info()) if repo else self.say(401, {"error": "no"})
        if path.startswith("/cdn/"):
            content = {
                sha256(each): each for repo in self.server.repos.values() for each in repo.files.values()
            }
            return self.send(content[path.removeprefix("/cdn/")])
        self._resolve(path)

    def _search(self, query: dict[str, list[str]]) -> None:
        words, kinds = query.get("search", [""])[0].lower(), query["filter"]
        kind = "gguf" if "gguf" in kinds else "safetensors"
        found = [repo for repo in self.server.repos.values() if words in repo.name.lower()]
        self.say(200, [repo.info() for repo in found if kind in repo.about])

    def _resolve(self, path: str) -> None:
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([0-9a-f]{40})/(.+)", path)
        repo = self.server.repos.get(match[1]) if match else None
        if not match or not repo or match[2] != repo.revision or match[3] not in repo.files:
            return self.say(404, {"error": "no"})
        if repo.gated and self.headers.get("authorization") != f"Bearer {self.server.token}":
            return self.say(401, {"error": "gated"})
        content = repo.files[match[3]]
        if len(content) <= SMALL:
            return self.send(content)
        digest = sha256(content)
        linked = {"X-Repo-Commit": repo.revision, "X-Linked-Size": str(len(content)), "X-Linked-Etag": digest}
        self.say(302, None, {"Location": f"/cdn/{digest}", **linked})

    def say(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        """JSON, or nothing."""
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def send(
        self, content: bytes, most: int | None = None, etag: str = "", pause: Fault | None = None
    ) -> None:
        """A file, or the range that is asked for; the connection is cut behind `most` bytes of it."""
        etag = etag or f'"{sha256(content)}"'
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", ""))
        begin = int(match[1]) if match and self.headers.get("if-range", etag) == etag else 0
        if begin >= len(content) and content:
            return self.say(416, None, {"Content-Range": f"bytes */{len(content)}"})
        body = content[begin:]
        self.send_response(206 if begin else 200)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(body if most is None else body[:most])
        if pause:
            self.wfile.flush()
            pause(self)
        if most is not None and most < len(body):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def serving_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """The hub, in a thread; the real client is allowed to ask it."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # read from the environment on import
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with FakeHub() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def gguf_repo(name: str = "maker/Tiny-GGUF", size: int = 300_000, word: str = "Q4_0") -> Repo:
    """A repository with one file that has a GGUF's name, and no other likeness."""
    content = hashlib.shake_128(name.encode()).digest(size)
    about = {"gguf": {"architecture": "llama", "total": 500_000, "context_length": 2048}}
    return Repo(name, {f"tiny-{word}.gguf": content, "README.md": b"hello"}, about)


def folder_repo(name: str = "maker/Tiny") -> Repo:
    """A repository as transformers writes one, in two shards."""
    files = {
        "config.json": b'{"model_type": "qwen2"}',
        "tokenizer.json": b"{}" * 900,
        "model-00001-of-00002.safetensors": b"a" * 50_000,
        "model-00002-of-00002.safetensors": b"b" * 30_000,
        "model.safetensors.index.json": b"{}",
        "model.py": b"raise SystemExit('code of a repository was run')",
        "pytorch_model.bin": b"\x80pickle",
    }
    about = {
        "safetensors": {"parameters": {"BF16": 40_000}, "total": 40_000},
        "config": {"model_type": "qwen2"},
        "cardData": {"license": "apache-2.0"},
    }
    return Repo(name, files, about)


def hub_catalogue(*variants: Variant, id: str = "tiny") -> Catalogue:
    """A catalogue of one model that lies in these repositories."""
    return Catalogue((Model(id, "Tiny", "MIT", 2048, 500_000, variants),))
