"""Every decoder that transformers knows, tried: served with its logits, or refused as docs/MODELS.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.fitting.borrowed import BORROWED

from .architectures import documented, others, outcome


def test_the_document_names_every_one() -> None:
    assert sorted(documented()) == others()
    assert {kind for kind, why in documented().items() if not why} == BORROWED


@pytest.mark.slow
@pytest.mark.parametrize("kind", others())
def test_it_is_as_the_document_says(tmp_path: Path, kind: str) -> None:
    assert outcome(kind, tmp_path) == documented()[kind]
