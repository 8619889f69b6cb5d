"""Models of other programs are found where these keep them, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

from app.models.local_models import Found, find_models


def put(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_hugging_face(tmp_path: Path) -> None:
    hub = tmp_path / ".cache" / "huggingface" / "hub"
    old, new = (hub / "models--maker--Tiny-1B" / "snapshots" / name for name in ("a" * 40, "b" * 40))
    for snapshot in (old, new):
        put(snapshot / "config.json", b"{}")
    put(old / "model.safetensors", b"12345")
    blob = put(new.parent.parent / "blobs" / "cc", b"123456")
    (new / "model.safetensors").symlink_to(Path("../../blobs") / blob.name)
    put(new.parent.parent / "refs" / "main", b"b" * 40)
    files = hub / "models--maker--Tiny-GGUF" / "snapshots" / ("d" * 40)
    put(files / "tiny-Q4_0.gguf")
    put(files / "mmproj-Q4_0.gguf")
    put(hub / "models--other--Pickled" / "snapshots" / ("e" * 40) / "pytorch_model.bin")
    put(hub / "datasets--other--Data" / "snapshots" / ("f" * 40) / "x.gguf")
    assert find_models({}, tmp_path) == [
        Found("Hugging Face", "maker/Tiny-1B", new, 6, "maker/Tiny-1B"),
        Found(
            "Hugging Face", "maker/Tiny-GGUF/tiny-Q4_0.gguf", files / "tiny-Q4_0.gguf", 4, "maker/Tiny-GGUF"
        ),
    ]
    moved = tmp_path / "moved"
    hub.rename(moved)
    assert find_models({}, tmp_path) == []
    assert len(find_models({"HF_HUB_CACHE": str(moved)}, tmp_path)) == 2


def test_lm_studio(tmp_path: Path) -> None:
    models = tmp_path / ".lmstudio" / "models"
    one = put(models / "maker" / "Tiny-GGUF" / "tiny-Q8_0.gguf")
    first = put(models / "maker" / "Big-GGUF" / "big-00001-of-00002.gguf", b"1" * 10)
    put(models / "maker" / "Big-GGUF" / "big-00002-of-00002.gguf", b"2" * 20)
    assert find_models({}, tmp_path) == [
        Found("LM Studio", "maker/Big-GGUF/big-00001-of-00002.gguf", first, 30, "maker/Big-GGUF"),
        Found("LM Studio", "maker/Tiny-GGUF/tiny-Q8_0.gguf", one, 4, "maker/Tiny-GGUF"),
    ]


def manifest(models: Path, name: str, tag: str, *layers: object) -> None:
    path = models / "manifests" / "registry.ollama.ai" / "library" / name / tag
    put(path, json.dumps({"schemaVersion": 2, "layers": layers}).encode())


def layer(digest: str, kind: str = "model") -> dict[str, object]:
    return {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": digest, "size": 4}


def test_ollama(tmp_path: Path) -> None:
    models = tmp_path / ".ollama" / "models"
    blob = put(models / "blobs" / f"sha256-{'a' * 64}")
    put(tmp_path / "secret")
    manifest(models, "tiny", "1b", layer(f"sha256:{'a' * 64}"), layer(f"sha256:{'b' * 64}", "template"))
    manifest(models, "gone", "latest", layer(f"sha256:{'c' * 64}"))
    manifest(models, "evil", "latest", layer("sha256:../../../../secret"), layer("../../secret"), 7)
    manifest(models, "odd", "latest", "layers", None)
    put(models / "manifests" / "registry.ollama.ai" / "library" / "bad" / "json", b"{")
    put(models / "manifests" / "registry.ollama.ai" / "library" / "large" / "json", b" " * (2 << 20))
    assert find_models({}, tmp_path) == [Found("Ollama", "tiny:1b", blob, 4)]
    elsewhere = tmp_path / "elsewhere"
    models.rename(elsewhere)
    assert [each.name for each in find_models({"OLLAMA_MODELS": str(elsewhere)}, tmp_path)] == ["tiny:1b"]


def test_what_was_put_into_octavo_s_own_folder_by_hand(tmp_path: Path) -> None:
    models = tmp_path / "octavo" / "models"
    one, two = put(models / "通义.gguf"), put(models / "Tiny GGUF" / "tiny-Q8_0.gguf")
    put(models / "Folder" / "config.json", b"{}")
    put(models / "Folder" / "model.safetensors", b"123456")
    put(models / "fetched" / "bf16" / "tiny.gguf")  # installed.py's
    put(models / ".fetched.deleted" / "tiny.gguf")
    put(models / "half" / "tiny.gguf.part")
    assert find_models({}, tmp_path, models) == [
        Found("Octavo", "Folder", models / "Folder", 6),
        Found("Octavo", "Tiny GGUF/tiny-Q8_0.gguf", two, 4),
        Found("Octavo", "通义.gguf", one, 4),
    ]
    assert find_models({}, tmp_path) == []


def test_where_nothing_is(tmp_path: Path) -> None:
    assert find_models({}, tmp_path) == []
    put(tmp_path / ".lmstudio" / "models", b"a file")
    assert find_models({}, tmp_path) == []
