"""A folder as Hugging Face's repositories have it: config.json, weights in safetensors, files for the text.

    config.json · model.safetensors, or model.safetensors.index.json, which says in which file each tensor is
    tokenizer.json tokenizer_config.json special_tokens_map.json generation_config.json chat_template.jinja

Of a model that takes images or sound, too, only the half that reads text is taken: its config is lifted out
of text_config, its tensors lose the prefix that tells them from the others, which are left out. Programs that
lie in such a folder are not looked at, nor what config.json says of them (auto_map).
"""

from __future__ import annotations

import mmap
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import BadCheckpoint, UnsupportedModel
from .checkpoint import Checkpoint, TensorInfo, TextFiles, close_map
from .files import map_file, read_bytes, read_json, safe_join, stays_within
from .gguf import PART, read_gguf
from .safetensors_header import SafetensorsHeader

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
MAX_CONFIG, MAX_TOKENIZER, MAX_TEMPLATE = 2 << 20, 64 << 20, 1 << 20  # bytes
MAX_TENSORS, MAX_SHARDS = 1 << 17, 500
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
NEVER_OPENED = (
    "Files of that kind can hold programs and are never opened; look for the model as safetensors or GGUF"
)
# Where older tools wrote how the weights are quantized, and what they left unsaid.
QUANTIZATION_FILES = {"quantize_config.json": "gptq", "quant_config.json": "awq"}

KEPT = ("quantization_config", "compression_config")  # of a wrapped model's other tables
# Prefixes of text tensors in wrapped models -> what the same model has alone.
TEXT_PREFIXES = {
    "model.language_model.": "model.",
    "model.text_model.": "model.",
    "language_model.model.": "model.",
    "language_model.": "",
}
NOT_TEXT = re.compile(
    r"(model\.)?(visual|vision_\w+|image_\w+|audio_\w+|speech_\w+|embed_(vision|audio)|connector|perceiver\w*"
    r"|mm_projector|multi_modal_projector|multimodal_projector|aligner|patch_\w+|resampler)\..*"
    r"|(model\.)?image_newline"
)


def read_folder(root: Path) -> Checkpoint:
    """Map the weights, read the rest. Raises BadCheckpoint or UnsupportedModel; nothing stays open then."""
    config = read_json(root, "config.json", MAX_CONFIG)
    if config is None:
        return _gguf_in(root)
    metadata, wrapped = _text_half(config)
    for name, method in QUANTIZATION_FILES.items():
        if "quantization_config" not in metadata and (found := read_json(root, name, MAX_CONFIG)) is not None:
            metadata["quantization_config"] = {"quant_method": method} | found
    text = _text_files(root)
    shards = _shards(root)
    files: dict[Path, mmap.mmap] = {}
    try:
        tensors = _tensors(root, shards, files)
    except BaseException:
        for data in files.values():
            close_map(data)
        raise
    if wrapped:
        tensors = _text_tensors(root, tensors)
    return Checkpoint(root, "hf", metadata, tensors, files, text, wrapped)


def _gguf_in(root: Path) -> Checkpoint:
    """A folder without config.json: the one GGUF model in it, be it in parts."""
    found = [
        path
        for path in sorted(root.glob("*.gguf"))
        if (part := PART.fullmatch(path.name)) is None or part[2] == "00001"
    ]
    if not found:
        raise BadCheckpoint(f"{root.name or root} is no model: it has neither a config.json nor a GGUF file.")
    if len(found) > 1:
        names = ", ".join(path.name for path in found[:5])
        raise BadCheckpoint(f"{root.name} has {len(found)} GGUF files; name one of them: {names}.")
    return read_gguf(stays_within(root, found[0]))


def _text_half(config: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """config.json with what text_config says in place of what the whole says, and whether it had one."""
    inner = config.get("text_config", config.get("llm_config"))
    if inner is None:
        return dict(config), False
    if not isinstance(inner, dict):
        raise BadCheckpoint(f"config.json is damaged: its text_config is {inner!r:.40}, not a table.")
    outer = {key: value for key, value in config.items() if not key.endswith("_config") or key in KEPT}
    return outer | inner, True


def _text_tensors(root: Path, tensors: dict[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Without those of images and sound; names as the text model alone has them."""
    found: dict[str, TensorInfo] = {}
    for name, tensor in tensors.items():
        prefix = next((prefix for prefix in TEXT_PREFIXES if name.startswith(prefix)), "")
        if not prefix and NOT_TEXT.fullmatch(name):
            continue
        plain = TEXT_PREFIXES.get(prefix, "") + name.removeprefix(prefix)
        if plain in found:
            raise BadCheckpoint(f"{root.name} has the tensor {plain} under two names; one of them is {name}.")
        found[plain] = replace(tensor, name=plain)
    return found


def _shards(root: Path) -> dict[str, set[str] | None]:
    """File -> the tensors that must be in it, None for any."""
    if (root / WEIGHTS).exists():
        return {WEIGHTS: None}
    index = read_json(root, INDEX, most_values=MAX_TENSORS)
    if index is not None:
        return _indexed(index)
    found = sorted(path.name for path in root.glob("*.safetensors"))
    if len(found) == 1:
        return {found[0]: None}
    if found:
        raise BadCheckpoint(
            f"{root.name} has {len(found)} safetensors files and no {INDEX}, which says what is in them."
        )
    pickles = sorted(path.name for path in root.iterdir() if path.suffix in PICKLES)
    if pickles:
        raise UnsupportedModel(f"{root.name} has its weights only as {pickles[0]:.80}. {NEVER_OPENED}.")
    raise BadCheckpoint(f"{root.name} has no {WEIGHTS}; the download is incomplete.")


def _indexed(index: dict[str, Any]) -> dict[str, set[str] | None]:
    places = index.get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(f, str) for f in places.values()):
        raise BadCheckpoint(f"{INDEX} is damaged: it has no weight_map that says where each tensor is.")
    shards: dict[str, set[str] | None] = {}
    for name, file in places.items():
        wanted = shards.setdefault(file, set())
        assert wanted is not None
        wanted.add(name)
    if len(shards) > MAX_SHARDS:
        raise BadCheckpoint(f"{INDEX} names {len(shards)} files; at most {MAX_SHARDS} are taken.")
    return shards


def _tensors(
    root: Path, shards: dict[str, set[str] | None], files: dict[Path, mmap.mmap]
) -> dict[str, TensorInfo]:
    """All tensors of all shards, each where the index says; `files` is filled with what was mapped."""
    paths = {name: _place(root, name, wanted is None) for name, wanted in shards.items()}
    missing = [name for name, path in paths.items() if not path.is_file()]
    if missing:
        more, first = len(missing) - 1, f"{missing[0]:.80}"
        lacks = f"{first} and {more} more" if more else first
        raise BadCheckpoint(f"{root.name} has no {lacks}; the download is incomplete.")
    tensors: dict[str, TensorInfo] = {}
    for number, (name, wanted) in enumerate(shards.items()):
        if not name.endswith(".safetensors"):
            raise UnsupportedModel(f"{root.name} has weights in {name:.80}. {NEVER_OPENED}.")
        path = paths[name]
        files[path] = map_file(path, 8, "safetensors")
        found = SafetensorsHeader(files[path], name, number).read()
        if wanted is not None and (odd := sorted(wanted ^ found.keys())):
            where = "missing in {}" if odd[0] in wanted else "not named by the index but in {}"
            raise BadCheckpoint(f"{root.name} is damaged: tensor {odd[0]:.200} is {where.format(name)}.")
        tensors |= found
        if len(tensors) > MAX_TENSORS:
            raise BadCheckpoint(f"{root.name} has more than {MAX_TENSORS} tensors.")
    return tensors


def _place(root: Path, name: str, is_seen: bool) -> Path:
    """Where a file of weights lies. One that was `seen` in the folder may be called anything; else a stranger
    wrote its name.
    """
    return stays_within(root, root / name) if is_seen else safe_join(root, name)


def _text_files(root: Path) -> TextFiles:
    return TextFiles(
        tokenizer=read_bytes(root, "tokenizer.json", MAX_TOKENIZER) or b"",
        tokenizer_config=(config := read_json(root, "tokenizer_config.json") or {}),
        special_tokens=read_json(root, "special_tokens_map.json") or {},
        generation=read_json(root, "generation_config.json", MAX_CONFIG) or {},
        templates=_templates(root, config),
    )


def _templates(root: Path, config: dict[str, Any]) -> dict[str, str]:
    """Chat templates by name. chat_template.jinja comes before chat_template.json, and that before
    tokenizer_config.json, where a list holds several.
    """
    templates: dict[Any, Any] = {}
    for holder in (config, read_json(root, "chat_template.json", MAX_TEMPLATE) or {}):
        value = holder.get("chat_template")
        if isinstance(value, list):
            templates |= {each.get("name"): each.get("template") for each in value if isinstance(each, dict)}
        elif value is not None:
            templates["default"] = value
    if (data := read_bytes(root, "chat_template.jinja", MAX_TEMPLATE)) is not None:
        try:
            templates["default"] = data.decode()
        except UnicodeDecodeError as error:
            raise BadCheckpoint(f"chat_template.jinja is not UTF-8 at byte {error.start}.") from error
    for name, template in templates.items():
        if not isinstance(name, str) or not isinstance(template, str):
            raise BadCheckpoint(f"The chat template {name!r:.40} is {template!r:.40}, not a text.")
    return templates
