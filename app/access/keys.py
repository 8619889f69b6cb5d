"""The installation's secrets: made once, kept in files that only this user can read.

    secret   32 random bytes; the rest is derived from it by purpose: the session cookie, one-time links, the
             key of the engine's prefix hashes
    key      what API clients send; printed by `octavo key` and `octavo serve` only
A one-time link proves that whoever made it could read `secret`, so a second start makes one without asking
the first.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from pathlib import Path

from ..errors import AppError
from ..private_files import write_private
from ..settings import Home

LINK_LIFE_S = 60


def keep_private(path: Path, content: bytes) -> bytes:
    """The content of `path`, which becomes `content` if there is none yet. Two processes get the same."""
    if not path.exists():
        try:
            write_private(path, content, replace=False)
        except OSError as error:
            raise AppError(f"{path} can't be written: {error.strerror}.") from error
    try:
        return path.read_bytes()
    except OSError as error:
        raise AppError(f"{path} can't be read: {error.strerror}.") from error


class Keys:
    """The secrets of one home folder."""

    def __init__(self, home: Home) -> None:
        self._folder = home
        text = keep_private(home / "secret", secrets.token_hex(32).encode())
        key = keep_private(home / "key", f"octavo-{secrets.token_hex(24)}".encode())
        self.api_key = key.decode("latin-1").strip()
        if len(text) != 64 or not self.api_key.startswith("octavo-"):
            damaged = home / ("secret" if len(text) != 64 else "key")
            raise AppError(f"{damaged} is damaged. Delete it and start again.")
        self._secret = text

    def renew_api_key(self) -> str:
        """Another key for API clients; the one before opens nothing from now on."""
        new = f"octavo-{secrets.token_hex(24)}"
        (self._folder / "key").unlink(missing_ok=True)
        self.api_key = keep_private(self._folder / "key", new.encode()).decode("latin-1").strip()
        return self.api_key

    def derive(self, purpose: str) -> bytes:
        """A secret of its own for each purpose, the same at every start."""
        return hmac.digest(self._secret, purpose.encode(), "sha256")

    def session(self, port: int) -> str:
        """The cookie's value. A cookie goes to every port of a host, so each port has its own."""
        return self.derive(f"session {port}").hex()

    @property
    def prefix_secret(self) -> bytes:
        """What keys the engine's prefix hashes."""
        return self.derive("prefix hashes")

    @property
    def api_owner(self) -> str:
        """Whose prefixes an API request may share: one key, one owner."""
        return "api:" + self.derive(f"owner {self.api_key}").hex()[:16]

    def link(self, port: int, now_ns: int | None = None) -> str:
        """The page's address with a token that opens it once, within LINK_LIFE_S."""
        issued = f"{now_ns or time.time_ns()}.{secrets.token_urlsafe(12)}"
        return f"http://127.0.0.1:{port}/enter?t={issued}.{self._seal(port, issued)}"

    def issued(self, port: int, token: str) -> int | None:
        """When a token was made, in ns; None if it was not made with this secret for this port."""
        issued, _, seal = token.rpartition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "replace"), self._seal(port, issued).encode()):
            return None
        return int(issued.partition(".")[0])

    def _seal(self, port: int, issued: str) -> str:
        return hmac.digest(self.derive(f"link {port}"), issued.encode("utf-8", "replace"), "sha256").hex()


class Links:
    """The server's side of one-time links: each opens the page once. Any thread may redeem."""

    def __init__(self, keys: Keys, port: int) -> None:
        self._keys, self._port = keys, port
        self._started = time.time_ns()  # a link that was used before a restart stays used
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()

    def redeem(self, token: str, now_ns: int | None = None) -> bool:
        """Whether the token opens the page. It never does again."""
        now = now_ns or time.time_ns()
        oldest = now - LINK_LIFE_S * 10**9
        if now < self._started:  # the clock was set back, and no link would work until it has caught up
            self._started = oldest
        issued = self._keys.issued(self._port, token)
        if issued is None or not max(self._started, oldest) <= issued <= now:
            return False
        with self._lock:
            self._used = {old: at for old, at in self._used.items() if at >= oldest}
            fresh = token not in self._used
            self._used[token] = issued
            return fresh
