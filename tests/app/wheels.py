"""A model of a few hundred bytes in wheels in a folder: the package index without a net."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.models.catalogue import Catalogue, Model, Variant, Wheel


@dataclass(frozen=True)
class TinyModel:
    """`content` is what the joined file must hold."""

    catalogue: Catalogue
    content: bytes
    folder: Path

    @property
    def wheels(self) -> list[Path]:
        return sorted(self.folder.glob("*.whl"))


def write_wheel(folder: Path, package: str, version: str, member: str, content: bytes) -> Path:
    """A wheel that holds one member and what pip insists on."""
    name = package.replace("-", "_")
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(member, content)
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('a model package was run')")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def tiny_model(folder: Path, monkeypatch: pytest.MonkeyPatch, parts: tuple[bytes, ...]) -> TinyModel:
    """The wheels in `folder`, pip pointed there and nowhere else, and a catalogue that names them."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(folder / "none"))
    wheels = []
    for number, part in enumerate(parts, 1):
        wheel = Wheel(f"octavo-tiny-part{number}", "1.0", f"octavo_tiny_part{number}/data/part.bin")
        write_wheel(folder, wheel.package, wheel.version, wheel.member, part)
        wheels.append(wheel)
    content = b"".join(parts)
    digest = hashlib.sha256(content).hexdigest()
    variant = Variant("GGUF Q4_0", "tiny.gguf", len(content), digest, tuple(wheels))
    return TinyModel(Catalogue((Model("tiny", "Tiny", "MIT", 10, 5, (variant,)),)), content, folder)
