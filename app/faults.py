"""What nobody foresaw: the person gets one sentence, and the details go to the file that it names.

octavo.log in the home folder takes what the program and its libraries warn of; nothing of that appears in the
terminal. It holds no secrets, and is begun anew when it is long.
"""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

LONGEST = 2**20  # bytes; as much of what was before is kept beside it
FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Log(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A log that can't be written, on a full disk for instance, disturbs nobody."""


def _logs() -> list[_Log]:
    return [handler for handler in logging.getLogger().handlers if isinstance(handler, _Log)]


def keep_log(path: Path) -> None:
    """From now on this file is the log. It is made when there is something to write."""
    for log in _logs():
        logging.getLogger().removeHandler(log)
        log.close()
    log = _Log(path, maxBytes=LONGEST, backupCount=1, encoding="utf-8", delay=True)
    log.setFormatter(logging.Formatter(FORM))
    logging.getLogger().addHandler(log)


def explain(what: str, error: BaseException) -> str:
    """The sentence for an error whose details are noted. `what`: "The model could not be loaded"."""
    logging.getLogger("octavo").error(what, exc_info=error)
    where = "".join(f" The details are in {log.baseFilename}." for log in _logs())
    return f"{what}; this is a fault in Octavo.{where}"
