"""A model ready to talk: what is loaded from a file or folder, and conversations in, Streams out.

`load` reads the header, plans the memory, packs the weights or maps those that are kept packed, and proves
with one token that all of it works; from then on `submit` turns messages into ids on the caller's thread and
hands them to the engine's.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence as Seq
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

import kernels

from .abilities import SERVED
from .agreement import check_agreement
from .checkpoints import Checkpoint, open_checkpoint
from .config import EngineConfig
from .detokenizer import Detokenizer
from .device import detect, usable_cores
from .engine import Engine, make_scheduler
from .errors import BadCheckpoint, BadRequest, EngineError, UnsupportedModel
from .formats import QUANTIZERS, check_quantization
from .inventory import is_unquantized
from .memory_plan import MemoryFacts, MemoryPlan, ModelFacts
from .model_facts import model_facts
from .models import ModelConfig, load_decoder, read_config
from .packed_cache import PackedCache, open_cache
from .pool_picture import MemoryPicture
from .precision import fit
from .prompt import build_prompt
from .reply_start import start_reply
from .runner import Runner
from .sequence import Sequence
from .service import EngineService, Job, JobStream
from .templates import TemplateRenderer
from .tokenizer import Tokenizer, well_formed
from .types import (
    Delta,
    EngineStats,
    Estimate,
    Finish,
    FinishReason,
    Message,
    Priority,
    Request,
    SamplingParams,
)

SERVED_BY = {"triton": ("cuda", "rocm")}  # a backend that is asked for by name -> kinds of device
_PROBE = Request(
    (Message("user", "Hello"),),
    SamplingParams(temperature=0, max_tokens=2, ignore_eos=True),
    owner="probe",
    priority=Priority.BACKGROUND,
)


@dataclass(frozen=True, slots=True)
class LLM:
    """A loaded model. Any thread may call its methods."""

    facts: ModelFacts
    plan: MemoryPlan
    tokenizer: Tokenizer
    renderer: TemplateRenderer
    service: EngineService
    runner: Runner
    cache: PackedCache | None

    @staticmethod
    def load(
        path: Path,
        config: EngineConfig = EngineConfig(),
        *,
        name: str = "",
        secret: bytes = b"",
        packed: Path | None = None,
        on_progress: Callable[[str, float], None] = lambda stage, part: None,
    ) -> LLM:
        """Load a GGUF file or a folder. `secret` keys the prefix hashes; `packed` is a folder to keep packed
        weights in; `on_progress` hears what is done, and how far.

        Raises BadCheckpoint, UnsupportedModel or ModelTooLarge; nothing stays behind then.
        """
        with open_checkpoint(path) as checkpoint:
            check_quantization(checkpoint.metadata, config.quantization)
            model_config = read_config(checkpoint)
            on_progress("tokenizer", 0.0)
            tokenizer = Tokenizer.of(checkpoint)
            check_vocabulary(checkpoint, tokenizer, model_config)
            renderer = TemplateRenderer.of(tokenizer)
            ops = select_ops(config, model_config)
            try:
                renderer.start()  # its process comes up while the weights are read
                device = detect(served=SERVED_BY.get(config.backend, SERVED))
                facts_in = partial(model_facts, name or name_of(path), checkpoint, model_config, ops)
                memory = MemoryFacts(device.memory_total, device.memory_available, device.unified)
                is_open = is_unquantized(checkpoint) and not model_config.borrowed
                precision, facts, plan = fit(memory, config, facts_in, is_open)
                cache = open_cache(packed, checkpoint, f"{facts.fingerprint} {precision}", ops)
                progress = partial(on_progress, "weights")
                model = load_decoder(
                    checkpoint, model_config, ops, plan.context_length, progress, precision, cache
                )
                check_agreement(model, ops)
                runner = Runner(model, ops, plan)
            except BaseException:
                renderer.close()
                ops.close()
                raise
        scheduler = make_scheduler(plan, facts, config, secret)
        service = EngineService(Engine(scheduler, runner))
        llm = LLM(facts, plan, tokenizer, renderer, service, runner, cache)
        on_progress("warm-up", 0.0)
        llm._warm_up()
        if cache:
            cache.save()
        on_progress("ready", 1.0)
        return llm

    @property
    def context_length(self) -> int:
        """The longest conversation, prompt and answer together."""
        return self.plan.context_length

    def submit(self, request: Request) -> JobStream:
        """Start to answer. Raises BadRequest, PromptTooLong, TemplateError or EngineStopped."""
        submitted = time.monotonic()
        start = start_reply(self.tokenizer, request, partial(self.prompt, date=request.date))
        params, longest = request.sampling, request.sampling.max_tokens
        if request.shorten and longest and longest > self.context_length - len(start.prompt):
            longest = None  # up to the end of the context, which is sooner
        seed = params.seed if params.seed is not None else secrets.randbits(63)
        own = start.prompt[len(start.prompt) - start.num_own :]
        detokenizer = Detokenizer(self.tokenizer, params.stop, own)
        job = Job(params, seed, detokenizer, submitted, self.tokenizer.fingerprint, num_given=start.num_own)
        if start.new_ids:
            job.answers.put(Delta(start.text, start.new_ids))
        sequence = Sequence(
            id=request.id or secrets.token_hex(8),
            prompt=start.prompt,
            max_tokens=longest,
            owner=request.owner,
            group=request.group or request.owner,
            priority=request.priority,
            end_ids=frozenset() if params.ignore_eos else self.tokenizer.eos_ids,
            request=job,
        )
        return self.service.submit(sequence)

    def estimate(self, request: Request) -> Estimate:
        """What answering would cost. Raises BadRequest, PromptTooLong or TemplateError."""
        prompt = self.prompt(request.messages, request.date)
        return self.service.estimate(Sequence(id="", prompt=prompt, owner=request.owner))

    def count(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        """How many tokens each text has, alone."""
        return tuple(len(self.tokenizer.encode(well_formed(text), special=False)) for text in texts)

    def prompt(self, messages: Seq[Message], date: str = "") -> list[int]:
        """The ids of a conversation, up to where the next answer begins."""
        return build_prompt(self.tokenizer, self.renderer, messages, date, self.context_length)

    def stats(self) -> EngineStats:
        """How busy the engine is, and whether it is sound."""
        return self.service.stats()

    @property
    def backend(self) -> str:
        """The name of the kernels that compute."""
        return self.runner.ops.name

    def picture(self) -> MemoryPicture:
        """Who holds which block now. Raises EngineStopped, as the next two do."""
        return self.service.between_steps(Engine.picture)

    def free_cached(self) -> int:
        """Forget what no answer uses now; how many bytes other programs have more."""
        return self.service.between_steps(Engine.free_cached)

    def keep_free(self, num_bytes: int) -> None:
        """Shrink or grow the pool, so that this much of the machine's memory is free as it is used now."""

        def resize(engine: Engine) -> None:
            room = engine.held_bytes + detect().memory_available - num_bytes
            engine.resize(room if num_bytes else None)

        self.service.between_steps(resize)

    def _warm_up(self) -> None:
        """Compile or load every kernel, render the template once, and see that tokens come out."""
        try:
            for part in self.submit(_PROBE):
                if isinstance(part, Finish) and part.reason is FinishReason.ERROR:
                    raise EngineError(part.error)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Cancel what runs, end the threads and the helper process."""
        self.service.close()
        self.renderer.close()
        if self.cache:
            self.cache.close()
        self.runner.close()


def select_ops(config: EngineConfig, model: ModelConfig) -> kernels.Ops:
    """The kernels for a model, and the threads of torch. A borrowed one takes no other than plain torch's."""
    if not model.borrowed:
        torch.set_num_threads(1)  # torch's own pool spins beside ours and halves its speed
        if config.backend == "triton" and not torch.cuda.is_available():
            raise BadRequest(
                "backend is triton, which needs a card of NVIDIA or AMD; none is seen. Set auto."
            )
        device = "cuda" if config.backend == "triton" else "cpu"
        return kernels.select(device, config.backend, **backend_options(config))
    if config.backend not in ("auto", "reference") or config.quantization in QUANTIZERS:
        raise UnsupportedModel(
            f"{model.family.name}, is computed in plain torch with its weights as they are; choose auto for "
            "backend and quantization."
        )
    torch.set_num_threads(min(config.threads or usable_cores(), os.cpu_count() or 1))
    options = {"kv_dtype": model.borrowed.dtype} | backend_options(replace(config, backend="reference"))
    return kernels.select("cpu", "reference", **options)


def backend_options(config: EngineConfig) -> dict[str, Any]:
    """What kernels.select is told of the settings."""
    options: dict[str, Any] = {}
    if config.threads and config.backend not in ("reference", "triton"):
        options["threads"] = min(config.threads, os.cpu_count() or 1)  # more would stand in each other's way
    if config.kv_dtype != "auto":
        options["kv_dtype"] = getattr(torch, config.kv_dtype)
    return options


def name_of(path: Path) -> str:
    """What a model is called that has no other name."""
    return path.resolve().name if path.is_dir() else path.stem


def check_vocabulary(checkpoint: Checkpoint, tokenizer: Tokenizer, config: ModelConfig) -> None:
    """Every token must have a row of the embedding; more rows than tokens are usual."""
    if tokenizer.vocab_size > config.vocab_size:
        raise BadCheckpoint(
            f"{checkpoint.path.name}: the tokenizer has {tokenizer.vocab_size} tokens and the model knows "
            f"{config.vocab_size}; the files do not belong together."
        )
