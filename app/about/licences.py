"""Under which licence each installed package stands, as its own metadata says, and the texts that it brings
along. Octavo's own licence is a package's like the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

SAID = ("License-Expression", "License")
LONGEST = 60  # characters; a longer "licence" is its whole text


@dataclass(frozen=True, slots=True)
class Licence:
    """A package and its licence in words; "" where it says none."""

    name: str
    version: str
    licence: str


def installed_licences() -> list[Licence]:
    """All packages of this Python, by name. Takes a tenth of a second."""
    found = {each.metadata["Name"]: _licence(each) for each in distributions() if each.metadata["Name"]}
    return sorted(found.values(), key=lambda each: each.name.lower())


def _licence(package: Distribution) -> Licence:
    metadata = package.metadata
    classified = [
        each.rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier") or ()
        if each.startswith("License :: ") and not each.endswith(":: OSI Approved")
    ]
    expression, written = (" ".join("".join(metadata.get_all(name) or ()).split()) for name in SAID)
    said = expression or (written if len(written) <= LONGEST else "")
    return Licence(metadata["Name"], metadata["Version"], said or " or ".join(classified))


def licence_texts(name: str) -> str:
    """The texts that a package brings along, "" if none. Raises PackageNotFoundError."""
    texts = []
    for file in Distribution.from_name(name).files or ():
        if re.search(r"(?i)\b(licen[cs]e|copying|notice)", file.name) and not file.name.endswith(".py"):
            path = Path(str(file.locate()))
            if path.is_file():
                texts.append(path.read_text("utf-8", "replace"))
    return "\n\n".join(texts)
