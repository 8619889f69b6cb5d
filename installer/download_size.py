"""How large a download will be, before it starts: pip says which files, their servers say how long they are.

A file that already lies on this machine counts nothing. Where a server does not say, the answer says so.
"""

from __future__ import annotations

import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .console import size

PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Download:
    """What is to come."""

    files: int = 0
    bytes: int = 0
    local: int = 0  # files that are here already
    unknown: int = 0  # files whose server did not say

    def __str__(self) -> str:
        if not self.files:
            return "it is installed already"
        if self.local == self.files:
            return f"nothing to download, {_files(self.files)} on this machine"
        least = "at least " if self.unknown else ""
        here = f", {self.local} more on this machine" if self.local else ""
        return f"{least}{size(self.bytes)} to download in {_files(self.files - self.local)}{here}"


def _files(count: int) -> str:
    return f"{count} file{'s' * (count != 1)}"


def measure(addresses: list[str]) -> Download:
    """Ask for each file's length, eight at a time."""
    remote = [address for address in addresses if not address.startswith("file:")]
    with ThreadPoolExecutor(8) as pool:
        lengths = list(pool.map(_length, remote))
    return Download(len(addresses), sum(lengths), len(addresses) - len(remote), lengths.count(0))


def _length(address: str) -> int:
    try:
        request = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            return int(reply.headers.get("Content-Length") or 0)
    except (OSError, ValueError):
        return 0
