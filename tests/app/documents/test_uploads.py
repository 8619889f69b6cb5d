"""The route that takes files: behind the guard, streamed, limited, answered in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import app
from app import Services, Settings
from app.documents.attachments import FILE_LIMIT, FOLDER
from tests.app.fakes import FakeModel, fake_loader, make_home, model_file
from tests.app.sample_documents import pdf

PORT = 8642


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
    with TestClient(guarded, f"http://127.0.0.1:{PORT}", cookies=cookies) as client:
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
