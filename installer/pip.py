"""Running the environment's pip: its lines become progress, its failures become sentences.

pip's own output goes to a log file in the environment, for the day it is needed. Knows nothing of what is
installed or why.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .console import Step, size
from .errors import SetupError

# What pip's output holds -> what to do. The first that matches is told.
FAILURES = (
    (
        r"No space left on device|Errno 28|not enough space on the disk",
        "The disk is full. Free some space and start again.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError",
        "The package index's certificate was not accepted. Behind a company's proxy, name its certificate "
        "file in PIP_CERT; otherwise check the machine's clock.",
    ),
    (
        r"name resolution|getaddrinfo failed|nodename nor servname|Failed to resolve|NewConnectionError"
        r"|Failed to establish a new connection|Network is unreachable|ConnectTimeout|ReadTimeout"
        r"|Read timed out|ProxyError|Max retries exceeded|Connection reset|Connection refused",
        "The package index cannot be reached. Check the network (behind a proxy, set HTTPS_PROXY) and start "
        "again: what was downloaded is kept.",
    ),
    (
        r"Permission denied|Access is denied|Read-only file system",
        "A file could not be written. Keep the checkout where you may write, and close what uses its .venv.",
    ),
    (
        r"no such option|unknown command|invalid choice",
        "This pip is too old for the installer. Delete the folder .venv and start again.",
    ),
    (
        r"No matching distribution found for|Could not find a version|ResolutionImpossible",
        "The package index has no file that fits this Python on this machine. Python 3.12 has the most; with "
        "uv: uv run --no-project --python 3.12 -m installer run",
    ),
    (r"DO NOT MATCH THE HASHES", "A download came damaged. Start again."),
)
PACKAGES = ("lib/python3.*/site-packages", "Lib/site-packages")  # in a virtual environment
WITH_PROGRESS = (24, 1)  # the first pip that reports a download's progress in numbers
COLLECTING = re.compile(r"Collecting (\S+)")
DOWNLOADING = re.compile(r"Downloading (?:\S*/)?([A-Za-z0-9_.]+)-\d\S* \(([^)]+)\)")
PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
INSTALLING = re.compile(r"Installing collected packages: (.*)")


def progress(line: str, before: str) -> str:
    """What a line of pip's output says to a person; `before` is what was shown until now."""
    if match := PROGRESS.search(line):
        done, total = int(match[1]), int(match[2])
        return f"{before.split(' (')[0]} ({size(done)} of {size(total)})" if total else before
    if match := DOWNLOADING.search(line):
        return f"downloading {match[1]} ({match[2]})"
    if match := INSTALLING.search(line):
        count = match[1].count(",") + 1
        return f"installing {count} package{'s' * (count != 1)}"
    if match := COLLECTING.search(line):
        return f"looking for {match[1]}"
    return before


def explain(output: str) -> str:
    """The sentence for a failed run."""
    return next((sentence for pattern, sentence in FAILURES if re.search(pattern, output)), "pip failed.")


class PipFailed(SetupError):
    """pip ended with an error; `touched` says whether it had begun to change the environment."""

    def __init__(self, output: list[str], log: Path) -> None:
        words = "    ".join(["", *output[-5:]])
        super().__init__(f"{explain(''.join(output))}\npip's last words (all are in {log}):\n{words}")
        self.touched = any(INSTALLING.search(line) for line in output)


@dataclass(frozen=True, slots=True)
class Pip:
    """The pip of one Python. Call it with pip's arguments; it raises PipFailed with a sentence."""

    python: Path
    log: Path

    def __call__(self, word: str, *arguments: str, step: Step | None = None) -> str:
        """Run pip; returns what it wrote."""
        bar = ["--progress-bar", "raw"] if step and self.version() >= WITH_PROGRESS else []
        command = [*self._command, word, *bar, *arguments]
        lines: list[str] = []
        scratch = tempfile.TemporaryDirectory(prefix="pip-", dir=self.log.parent, ignore_cleanup_errors=True)
        with (
            scratch as folder,
            self.log.open("a", encoding="utf-8") as log,
            _start(command, folder) as process,
        ):
            log.write(f"$ {' '.join(command)}\n")
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if step:
                        step.note(progress(line, step.news))
                    if line.strip() and not PROGRESS.search(line):
                        lines.append(line)
                        log.write(line)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise PipFailed(lines, self.log)
        return "".join(lines)

    @property
    def _command(self) -> list[str]:
        return [str(self.python), "-I", "-m", "pip"]

    def version(self) -> tuple[int, ...]:
        """(24, 1) for pip 24.1.2; (0,) for none. Read from its folder's name: to start it takes time."""
        for packages in PACKAGES:
            for path in self.python.parent.parent.glob(f"{packages}/pip-*.dist-info"):
                if found := re.match(r"pip-(\d+)\.(\d+)", path.name):
                    return (int(found[1]), int(found[2]))
        return (0,)

    def plan(self, *arguments: str) -> list[str]:
        """The addresses of the files that `install` with these arguments would fetch; installs nothing."""
        report = self.log.with_suffix(".plan")
        report.unlink(missing_ok=True)
        self("install", "--dry-run", "--report", str(report), *arguments)
        items = json.loads(report.read_text(encoding="utf-8"))["install"]
        return [item["download_info"]["url"] for item in items]


def _start(command: list[str], scratch: str) -> subprocess.Popen[str]:
    """In an environment where a person's own pip settings (user = true) cannot lead outside.

    pip unpacks in `scratch`: one that is killed would leave it behind.
    """
    env = {**os.environ, "PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    env |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), scratch)
    return subprocess.Popen(
        command,
        env=env,
        text=True,
        encoding="utf-8",
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
