"""The route that takes files: behind the guard, streamed, limited, answered in sentences."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import app
from app import Services, Settings
from app.documents import attachments
from app.documents.attachments import FILE_LIMIT, FOLDER
from app.documents.reading import Document
from tests.app.fakes import PATIENCE_S, FakeModel, fake_loader, make_home, model_file
from tests.app.sample_documents import pdf

PORT = 8642
HOST = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    home = make_home(tmp_path)
    built = app.build(Settings(home, port=PORT, model=str(model_file(home))), fake_loader(FakeModel()))
    yield built
    built.close()


@pytest.fixture
def client(services: Services) -> Iterator[TestClient]:
    guarded = services.guard.wrap(Starlette(routes=app.all_routes(services)))
    cookies = {services.guard.cookie: services.keys.session(PORT)}
    with TestClient(guarded, HOST, cookies=cookies) as client:
        yield client


def kept(services: Services) -> int:
    return len(list((services.settings.home / FOLDER).glob("*")))


def test_a_file_comes_in(client: TestClient, services: Services) -> None:
    said = client.post("/files", params={"name": "Bücher é.pdf"}, content=pdf(["one", "", "three"]))
    about = said.json()
    assert said.status_code == 200 and about.pop("id")
    assert about == {
        "name": "Bücher é.pdf",
        "size": len(pdf(["one", "", "three"])),
        "unit": "page",
        "count": 3,
        "blank": 1,
        "chosen": False,
        "parts": [],
    }
    assert kept(services) == 2


def test_what_is_refused_is_said(client: TestClient, services: Services) -> None:
    said = client.post("/files", params={"name": "x.bin"}, content=bytes(99))
    assert said.status_code == 200 and said.json()["error"].startswith("x.bin was not taken. It is neither")
    assert client.get("/files").status_code == 405
    assert kept(services) == 0


def test_a_file_that_is_too_large(client: TestClient, services: Services) -> None:
    """Announced, it is not read at all; else it is ended where it grows too large."""
    announced = {"content-length": str(2 * 10**9)}
    assert client.post("/files", content=b"x", headers=announced).status_code == 413
    pieces = (bytes(2**20) for _ in range(FILE_LIMIT // 2**20 + 1))
    said = client.post("/files", params={"name": "x"}, content=pieces)
    assert said.status_code == 200 and said.json()["error"].startswith("x is larger than 100 MB")
    assert kept(services) == 0


def test_many_at_once_leave_the_page_its_threads(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read by two; what else needs a thread is not kept waiting."""
    go_on, folder = threading.Event(), services.settings.home / FOLDER

    def read(source: Path) -> Document:
        go_on.wait(PATIENCE_S)
        return Document("line", (source.read_text(),))

    async def all_at_once() -> tuple[int, set[str]]:
        guarded = services.guard.wrap(Starlette(routes=app.all_routes(services)))
        cookies = {services.guard.cookie: services.keys.session(PORT)}
        to = httpx.ASGITransport(guarded)
        async with httpx.AsyncClient(transport=to, base_url=HOST, cookies=cookies) as client:
            sent = [
                asyncio.create_task(client.post("/files", params={"name": "x"}, content=b"%d" % n))
                for n in range(60)
            ]
            while len(list(folder.glob("*.new"))) < 60:
                await asyncio.sleep(0.01)
            other = asyncio.create_task(client.get("/export/none.md"))
            await asyncio.wait([other, *sent], timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
            status = other.result().status_code if other.done() else 0
            go_on.set()
            return status, {(await each).json()["name"] for each in sent}

    monkeypatch.setattr(attachments, "read_document", read)
    assert asyncio.run(all_at_once()) == (404, {"x"})
    assert kept(services) == 120


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"cookie": "octavo=wrong"}, 401),
        ({"host": "evil.example"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_the_guard_stands_in_front(
    client: TestClient, services: Services, headers: dict[str, str], status: int
) -> None:
    client.cookies.clear() if "cookie" in headers else None
    said = client.post("/files", params={"name": "x"}, content=b"text", headers=headers)
    assert said.status_code == status and kept(services) == 0


def test_the_api_key_opens_it_not(client: TestClient, services: Services) -> None:
    client.cookies.clear()
    headers = {"authorization": f"Bearer {services.keys.api_key}"}
    assert client.post("/files", content=b"text", headers=headers).status_code == 401
