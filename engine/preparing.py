"""All that is found out about a model before its weights are read: may it be served, how, and does it fit.

What is free is measured first, so that the plan counts all that comes after. Whoever loads a model and
whoever scores a text begin here. No weights are read but for a look at some bytes of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernels import Ops

from .checkpoints import Checkpoint, open_checkpoint
from .checkpoints.files import name_of
from .config import EngineConfig
from .errors import BadCheckpoint
from .fitting.abilities import DeviceFacts
from .fitting.inventory import is_unquantized
from .fitting.memory_plan import MemoryFacts
from .fitting.model_facts import model_facts
from .fitting.placement import place
from .fitting.precision import Fit, fit
from .formats import check_quantization
from .models import ModelConfig, check_shapes, read_config
from .running.give_back import share_one_heap, trim
from .text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model before its weights."""

    checkpoint: Checkpoint  # open; what its text is made of was let go
    config: ModelConfig
    tokenizer: Tokenizer
    device: DeviceFacts
    ops: Ops
    memory: MemoryFacts  # before anything of it was loaded
    fitting: Fit  # in which precision, its facts and the plan


@contextmanager
def prepare(
    path: Path,
    config: EngineConfig,
    name: str = "",
    on_progress: Callable[[str, float], None] = lambda stage, part: None,
    sized: Callable[[EngineConfig, ModelConfig], EngineConfig] = lambda config, model: config,
) -> Iterator[Prepared]:
    """Open a model; its kernels end with an error, its files in any case. `sized`: what the plan is made for.

    Raises BadCheckpoint, UnsupportedModel, ModelTooLarge or BadRequest; nothing stays behind then.
    """
    share_one_heap()
    trim()  # what an earlier model left counts as free
    with open_checkpoint(path) as checkpoint:
        check_quantization(checkpoint.metadata, config.quantization)
        model = read_config(checkpoint)
        if not model.borrowed:
            check_shapes(checkpoint, model)
        device, ops = place(config, model, lambda: on_progress("card", 0.0))
        try:
            memory = MemoryFacts(device.memory_total, device.memory_available, device.unified)
            on_progress("tokenizer", 0.0)
            tokenizer = Tokenizer.of(checkpoint)
            check_vocabulary(checkpoint, tokenizer, model)
            facts = partial(
                model_facts,
                name or name_of(path),
                checkpoint,
                model,
                ops,
                tokenizer=tokenizer,
                step_tokens=config.max_step_tokens,
            )
            is_open = is_unquantized(checkpoint) and not model.borrowed
            fitting = fit(memory, sized(config, model), facts, is_open)
            checkpoint.drop_text()
            trim()
            yield Prepared(checkpoint, model, tokenizer, device, ops, memory, fitting)
        except BaseException:
            ops.close()
            raise


def check_vocabulary(checkpoint: Checkpoint, tokenizer: Tokenizer, config: ModelConfig) -> None:
    """Every token must have a row of the embedding; more rows than tokens are usual."""
    if tokenizer.vocab_size > config.vocab_size:
        raise BadCheckpoint(
            f"{checkpoint.path.name}: the tokenizer has {tokenizer.vocab_size} tokens and the model knows "
            f"{config.vocab_size}; the files do not belong together."
        )
