"""The person's token for the model hub: in the system's keyring where it has one that works, else in a file.

    hub-token    in the home folder, readable by this user only: the token, or the word "keyring"
So a keyring, which may open a dialog, is asked only where there is something in it. The token goes to the
hub and nowhere else. It is never shown again, and stands in no log and no error.
"""

from __future__ import annotations

import contextlib
import re
import threading
from pathlib import Path
from typing import Literal

from ..errors import AppError
from ..private_files import write_private

SERVICE, FILE, IN_KEYRING = "Octavo", "hub-token", "keyring"
FORM = re.compile(r"[A-Za-z0-9_.-]{8,500}")  # what a header can carry
KEYRING_S = 3.0  # a keyring that waits for its password is one that does not work
Place = Literal["", "keyring", "file"]


class HubToken:
    """Calling it gives the token, None if there is none. Any thread may call."""

    def __init__(self, home: Path, use_keyring: bool = True) -> None:
        self._file, self._name, self._keyring = home / FILE, str(home), use_keyring
        self._lock = threading.Lock()
        self._known: tuple[Place, str | None] = "", None
        self._stamp: object = None  # of the file, when that was so: another process may change it

    def __call__(self) -> str | None:
        return self._read()[1]

    @property
    def place(self) -> Place:
        """Where it is kept, "" if there is none."""
        return self._read()[0]

    def keep(self, token: str) -> Place:
        """Keep it; where. Raises AppError for what is no token and where it can't be written."""
        token = token.strip()
        if not FORM.fullmatch(token):
            raise AppError(
                "This is no token: one has 8 to 500 letters, digits and _ . - and begins with hf_."
            )
        self.forget()
        with self._lock:
            kept = self._ask("set_password", token) and self._ask("get_password") == token
            place: Place = "keyring" if kept else "file"
            self._write(IN_KEYRING if kept else token)
            return place

    def forget(self) -> None:
        """Delete it, wherever it is."""
        with self._lock:
            with contextlib.suppress(OSError, ValueError):
                if self._file.read_text("ascii").strip() == IN_KEYRING:
                    self._ask("delete_password")
            with contextlib.suppress(OSError):
                self._file.unlink()

    def _read(self) -> tuple[Place, str | None]:
        with self._lock:
            try:
                facts = self._file.stat()
                stamp: object = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
            except OSError:
                stamp = None
            if stamp != self._stamp:
                self._known, self._stamp = self._look(), stamp
            return self._known

    def _look(self) -> tuple[Place, str | None]:
        with contextlib.suppress(OSError, ValueError):
            token = self._file.read_text("ascii").strip()
            if token != IN_KEYRING:
                return "file", token
            if token := self._ask("get_password"):
                return "keyring", token
        return "", None

    def _write(self, token: str) -> None:
        try:
            write_private(self._file, token.encode())
        except OSError as error:
            raise AppError(f"{self._file} can't be written: {error.strerror}.") from error

    def _ask(self, do: str, *values: str) -> str:
        """What the keyring says; "" where it fails, has nothing, or takes too long (it may open a dialog)."""
        if not self._keyring:
            return ""
        answers: list[str] = []

        def ask() -> None:
            with contextlib.suppress(Exception):  # each keyring has errors of its own
                import keyring

                said = getattr(keyring, do)(SERVICE, self._name, *values)
                answers.append("done" if said is None and do == "set_password" else said or "")

        asking = threading.Thread(target=ask, name="octavo-keyring", daemon=True)
        asking.start()
        asking.join(KEYRING_S)
        if asking.is_alive():
            self._keyring = False
        return answers[0] if answers else ""
