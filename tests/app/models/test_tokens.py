"""The token for the hub: in a keyring that works, else in a file of this user's; never in an error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, PasswordDeleteError

from app.errors import AppError
from app.models import tokens
from app.models.tokens import HubToken

TOKEN = "hf_abcDEF0123456789"


class InMemory(KeyringBackend):
    """A keyring as a desktop has one; `harm` is done to whoever asks."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.harm: Callable[[], object] = lambda: None

    def get_password(self, service: str, username: str) -> str | None:
        self.harm()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.harm()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self.harm()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError


@pytest.fixture
def ring() -> Iterator[InMemory]:
    before, ring = keyring.get_keyring(), InMemory()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def test_in_a_keyring(ring: InMemory, tmp_path: Path) -> None:
    token = HubToken(tmp_path)
    assert (token(), token.place) == (None, "")
    assert token.keep(f" {TOKEN}\n") == "keyring" and token() == TOKEN
    again = HubToken(tmp_path)
    assert (again(), again.place) == (TOKEN, "keyring")
    assert (tmp_path / "hub-token").read_text() == "keyring"
    again.forget()
    assert HubToken(tmp_path)() is None and not ring.kept


def test_a_keyring_that_may_open_a_dialog_is_not_asked_for_nothing(ring: InMemory, tmp_path: Path) -> None:
    asked: list[int] = []
    ring.harm = lambda: asked.append(1)
    token = HubToken(tmp_path)
    token.forget()
    assert (token(), token.place, asked) == (None, "", [])


def test_each_home_has_its_own(ring: InMemory, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        HubToken(tmp_path / name).keep(f"{TOKEN}-{name}")
    assert [HubToken(tmp_path / name)() for name in "ab"] == [f"{TOKEN}-a", f"{TOKEN}-b"]


def test_in_a_file_where_the_keyring_fails(ring: InMemory, tmp_path: Path) -> None:
    def fail() -> None:
        raise KeyringError("no secret service")

    ring.harm = fail
    token = HubToken(tmp_path)
    assert token.keep(TOKEN) == "file" and token() == TOKEN
    assert oct((tmp_path / "hub-token").stat().st_mode)[-3:] == "600"
    assert HubToken(tmp_path)() == TOKEN
    token.forget()
    assert not list(tmp_path.iterdir()) and HubToken(tmp_path)() is None


def test_a_keyring_that_waits_for_a_dialog_is_not_waited_for(
    ring: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    monkeypatch.setattr(tokens, "KEYRING_S", 0.1)
    ring.harm = lambda: over.wait(20)
    assert HubToken(tmp_path).keep(TOKEN) == "file"
    over.set()


def test_a_keyring_that_forgets_is_none(
    ring: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "set_password", lambda *values: None)
    assert HubToken(tmp_path).keep(TOKEN) == "file"


@pytest.mark.parametrize("use_keyring", [True, False])
def test_what_another_process_does_is_seen(ring: InMemory, tmp_path: Path, use_keyring: bool) -> None:
    running, other = (HubToken(tmp_path, use_keyring) for _ in range(2))
    assert running() is None
    other.keep(TOKEN)
    assert running() == TOKEN
    other.keep(f"{TOKEN}-2")
    assert running() == f"{TOKEN}-2"
    other.forget()
    assert (running(), running.place) == (None, "")


@pytest.mark.parametrize(
    "token", ["", "short", "hf_with space", "hf_line\nbreak12", "hf_ü23456789", "x" * 501]
)
def test_what_is_no_token(token: str, tmp_path: Path) -> None:
    with pytest.raises(AppError, match="This is no token") as raised:
        HubToken(tmp_path, use_keyring=False).keep(token)
    assert not token.strip() or token not in str(raised.value)
