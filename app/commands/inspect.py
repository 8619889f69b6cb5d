"""`octavo inspect PATH`: what is in a checkpoint, for people: facts, a table of its tensors, what is wrong.

The engine finds all of it, without loading the weights; this only writes it down.
"""

from __future__ import annotations

from engine import Inspection, Tensors, in_words

from .terminal import show_table


def show(found: Inspection) -> None:
    """Facts, a row for each kind of tensor, then what is wrong."""
    for name, value in _facts(found):
        if value:
            print(f"{name + ':':14}{value}")
    print()
    show_table([("tensors", "", "on disk", "", "in memory", "", ""), *map(_row, found.tensors)])
    for problem in found.problems:
        print(f"\nproblem: {problem}")


def _facts(found: Inspection) -> list[tuple[str, str]]:
    half = ", the half that reads text" if found.text_half_only else ""
    ends = " ".join(found.end_tokens)
    special = [f"{name} {text}" for name, text in found.special_tokens.items()]
    return [
        ("file" if found.source == "gguf" else "folder", found.path),
        ("architecture", found.architecture + half),
        ("family", found.family),
        ("parameters", f"{found.parameters:,}"),
        ("layers", f"{found.num_layers or ''}"),
        ("context", f"{found.context_length:,} tokens" if found.context_length else ""),
        ("weights", f"{in_words(found.disk_bytes)} on disk, {in_words(found.memory_bytes)} in memory"),
        ("vocabulary", f"{found.num_tokens:,} tokens" if found.num_tokens else ""),
        ("special", ", ".join(special) + (" (begins every prompt: bos)" if found.starts_with_bos else "")),
        ("answers end", f"at {ends}" if ends else ""),
        ("template", f"{found.template}; roles: {', '.join(found.template_roles) or 'none'}"),
        ("fingerprint", found.fingerprint),
    ]


def _row(each: Tensors) -> tuple[str, ...]:
    in_memory = in_words(each.memory_bytes) if each.format else ""
    return (
        each.kind,
        f"{each.count} x",
        in_words(each.disk_bytes),
        each.source,
        in_memory,
        each.format or "-",
        each.error,
    )
