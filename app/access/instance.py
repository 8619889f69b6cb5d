"""One running Octavo for each home folder: a lock that ends with its process, and a note of its port.

    instance.lock   held by the first process; the system lets go of it however that process ends
    instance.json   {"pid": ..., "port": ...}, written once the page can be used
    instance.quit   put there by whoever wants it to end
A second start finds the lock taken, reads the port, asks the first one how it is and opens its page with a
link of its own making (keys.py).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import AlreadyRunning, AppError
from ..models.catalogue import read_catalogue
from ..models.model_store import ModelStore
from ..private_files import write_private
from ..settings import Home
from .keys import Keys

START_S = 30.0  # how long a first start may take before a second one gives up on it
HEALTH_S = 5.0  # how long a running one may take to say how it is
END_S = 30.0  # and to end


class FileLock:
    """A file that at most one process holds. Raises BlockingIOError if another one does."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._file)
        except OSError:
            os.close(self._file)
            raise BlockingIOError(path) from None

    def close(self) -> None:
        """Let go; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Instance:
    """This process as the one that works with a home folder. Raises AlreadyRunning if another one does."""

    def __init__(self, home: Home) -> None:
        self._note, self._wish = home / "instance.json", home / "instance.quit"
        try:
            self._lock = FileLock(home / "instance.lock")
        except BlockingIOError:
            port = _read_port(self._note)
            where = f" at http://127.0.0.1:{port}" if port else ""
            raise AlreadyRunning(
                f"Octavo is already running{where} with the folder {home.path}.", port
            ) from None
        except OSError as error:
            raise AppError(f"{home / 'instance.lock'} can't be used: {error.strerror}.") from error
        for left in (self._note, self._wish):  # by a process that was killed
            left.unlink(missing_ok=True)

    def announce(self, port: int) -> None:
        """The page can be used: from now on a second start opens it."""
        try:
            write_private(self._note, json.dumps({"pid": os.getpid(), "port": port}).encode())
        except OSError as error:
            raise AppError(f"{self._note} can't be written: {error.strerror}.") from error

    @property
    def asked_to_end(self) -> bool:
        """Whether somebody wants this process to end."""
        return self._wish.exists()

    def close(self) -> None:
        """Let another process have the home folder."""
        for note in (self._note, self._wish):
            with contextlib.suppress(OSError):
                note.unlink(missing_ok=True)
        self._lock.close()


def ask_to_end(home: Home) -> None:
    """Ask the instance that holds `home` to end; it may be this process itself."""
    try:
        os.close(os.open(home / "instance.quit", os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise AppError(f"{home / 'instance.quit'} can't be written: {error.strerror}.") from error


def end_running(home: Home, timeout: float = END_S) -> bool:
    """End the instance that holds `home`, wait until it has; whether there was one. AppError if it stays."""
    end, found = time.monotonic() + timeout, False
    while _is_held(home / "instance.lock"):
        if time.monotonic() > end:
            process = f"process{_number(home)}"
            raise AppError(
                f"Octavo was asked to end but has not in {timeout:.0f} s. End its {process} by hand."
            )
        ask_to_end(home)  # again and again: one that has just begun takes old wishes away
        found = True
        time.sleep(0.1)
    return found


def _is_held(lock: Path) -> bool:
    try:
        FileLock(lock).close()
    except BlockingIOError:
        return True
    except OSError as error:
        raise AppError(f"{lock} can't be used: {error.strerror}.") from error
    return False


@dataclass(frozen=True, slots=True)
class Running:
    """What the instance that holds a home folder says of itself."""

    port: int
    model: str  # "" if it does not say
    fault: str  # why it can't answer; "" if it can, or is about to

    def check_wishes(self, home: Home, port: int | None, model: str | None) -> None:
        """Raises AppError if another port or model is wanted than it has; None: whatever it has."""
        wanted = ModelStore(home, read_catalogue()).id_of(model) if model else self.model
        if self.model not in ("", wanted) or port not in (None, self.port):
            raise AppError(
                f"Octavo is already running, with the model {self.model} at http://127.0.0.1:{self.port}. "
                "End it with `octavo quit` to start it with another model or port."
            )


def running(home: Home, timeout: float = START_S) -> Running:
    """The instance that holds `home`, once its page can be used; AppError if it never can."""
    port = running_port(home, timeout)
    there = http.client.HTTPConnection("127.0.0.1", port, timeout=HEALTH_S)
    try:
        there.request("GET", "/health", headers={"Authorization": f"Bearer {Keys(home).api_key}"})
        health = json.loads(there.getresponse().read())
        fault = str(health.get("reason", "")) if health["status"] == "error" else ""
        return Running(port, str(health["model"]), fault)
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
        return Running(port, "", "It does not say how it is; end it if its page does not work.")
    finally:
        there.close()


def running_port(home: Home, timeout: float = START_S) -> int:
    """Its port, once its page can be used; AppError if it never can."""
    end = time.monotonic() + timeout
    while (port := _read_port(home / "instance.json")) is None:
        if time.monotonic() > end:
            raise AppError(
                f"Another Octavo holds the folder {home.path} but has not shown its page in {timeout:.0f} s. "
                "End it, or set OCTAVO_HOME to another folder."
            )
        time.sleep(0.1)
    return port


def _read_port(note: Path) -> int | None:
    return _read(note, "port")


def _number(home: Home) -> str:
    """Of the process that holds it, if that is known."""
    pid = _read(home / "instance.json", "pid")
    return f" {pid}" if pid else ""


def _read(note: Path, name: str) -> int | None:
    try:
        value = json.loads(note.read_text("utf-8"))[name]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, int) else None
