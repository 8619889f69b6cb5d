"""A model ready to talk: what is loaded from a file or folder, and conversations in, Streams out.

`load` reads the header, plans the memory, packs the weights or maps those that are kept packed, and proves
with one token that all of it works; from then on `submit` turns messages into ids on the caller's thread and
hands them to the engine's.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence as Seq
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from .config import EngineConfig
from .engine import Engine, make_engine
from .errors import EngineError
from .fitting.abilities import PROCESSOR
from .fitting.device import detect, detect_processor
from .fitting.memory_plan import MemoryPlan, ModelFacts
from .fitting.precision import plan_again
from .models import load_decoder
from .packed_cache import PackedCache, open_cache
from .preparing import prepare
from .running.agreement import check_agreement
from .running.give_back import trim
from .running.measured_runner import make_runner
from .running.runner import Runner
from .scheduling.pool_picture import MemoryPicture
from .scheduling.sequence import Sequence
from .service import EngineService, Job, JobStream
from .text.detokenizer import Detokenizer
from .text.prompt import build_prompt
from .text.reply_start import ReplyStart, start_reply
from .text.templates import TemplateRenderer
from .text.text_prompt import text_prompt
from .text.tokenizer import Tokenizer, well_formed
from .tiers.opening import open_tiers, swap_space
from .tiers.tiers import Tiers
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

# the first waits for kernels and weights; from the second the pace learns what a prompt takes (pace.py)
_PROBES = tuple(
    Request(
        (Message("user", text),),
        SamplingParams(temperature=0, max_tokens=2, ignore_eos=True),
        owner=f"probe {text}",
        group="probe",
        priority=Priority.BACKGROUND,
    )
    for text in ("Hello", "Hello again")
)

NO_TEMPLATE = (
    "The model brings no chat template, so it is asked in ChatML's form; "
    "one that was not trained to chat goes on with a text rather than answers."
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
    tiers: Tiers | None

    @staticmethod
    def load(
        path: Path,
        config: EngineConfig = EngineConfig(),
        *,
        name: str = "",
        secret: bytes = b"",
        packed: Path | None = None,
        blocks: Path | None = None,
        disk_quota: int | None = None,
        on_progress: Callable[[str, float], None] = lambda stage, part: None,
    ) -> LLM:
        """Load a GGUF file or a folder. `secret` keys the prefix hashes; `packed` is a folder to keep packed
        weights in, `blocks` one for what chats leave behind, of `disk_quota` bytes (None: by the room there
        is, 0: none); `on_progress` hears what is done, and how far.

        Raises BadCheckpoint, UnsupportedModel or ModelTooLarge; nothing stays behind then.
        """
        with prepare(path, config, name, on_progress) as ready:
            checkpoint, ops, fitting = ready.checkpoint, ready.ops, ready.fitting
            precision, facts, plan = fitting
            renderer = TemplateRenderer.of(ready.tokenizer)
            try:
                renderer.start()  # its process comes up while the weights are read
                cache = open_cache(packed, checkpoint, f"{facts.fingerprint} {precision}", ops)
                progress = partial(on_progress, "weights")
                model = load_decoder(
                    checkpoint, ready.config, ops, plan.context_length, progress, precision, cache
                )
                trim()
                check_agreement(model, ops)
                again = partial(plan_again, ready.memory, config, fitting)
                runner, plan = make_runner(model, ops, plan, again)
                form = caution_of(ready.tokenizer)
                plan = replace(plan, reasons=(*plan.reasons, ready.device.reason, *filter(None, (form,))))
            except BaseException:
                renderer.close()
                raise
        engine = make_engine(runner, plan, facts, config, secret)
        swap = swap_space(config, ready.memory, detect_processor().memory_available)
        tiers = open_tiers(engine.scheduler, runner.cache, facts, secret, swap, blocks, disk_quota)
        engine.tiers = tiers
        llm = LLM(facts, plan, ready.tokenizer, renderer, EngineService(engine), runner, cache, tiers)
        on_progress("warm-up", 0.0)
        llm._warm_up()
        trim()
        if cache:
            cache.save()
        on_progress("ready", 1.0)
        return llm

    @property
    def context_length(self) -> int:
        """The longest conversation, prompt and answer together."""
        return self.plan.context_length

    def submit(self, request: Request) -> JobStream:
        """Start to answer, or to go on with a text. Raises BadRequest, PromptTooLong, TemplateError or
        EngineStopped.
        """
        submitted, params = time.monotonic(), request.sampling
        if request.text is not None:
            prompt = text_prompt(self.tokenizer, request.text, request.suffix, self.context_length)
            start, stops = ReplyStart(prompt, 0, (), ""), params.stop
        else:
            start = start_reply(self.tokenizer, request, partial(self.prompt, date=request.date))
            stops = (*params.stop, *self.renderer.turn_ends)
        longest = params.max_tokens
        if request.shorten and longest and longest > self.context_length - len(start.prompt):
            longest = None  # up to the end of the context, which is sooner
        seed = params.seed if params.seed is not None else secrets.randbits(63)
        own = start.prompt[len(start.prompt) - start.num_own :]
        detokenizer = Detokenizer(self.tokenizer, stops, own)
        job = Job(params, seed, detokenizer, submitted, self.tokenizer.fingerprint, num_given=start.num_own)
        if start.new_ids:
            job.answers.put(Delta(start.text, start.new_ids))
        sequence = Sequence(
            id=request.id or secrets.token_hex(8),
            prompt=start.prompt,
            max_tokens=longest,
            owner=request.owner,
            group=request.group or request.owner,
            keep=request.keep,
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
    def caution(self) -> str:
        """What should be known of this model before it is asked; mostly ""."""
        return caution_of(self.tokenizer)

    @property
    def backend(self) -> str:
        """The name of the kernels that compute."""
        return self.runner.ops.name

    def picture(self) -> MemoryPicture:
        """Who holds which block now. Raises EngineStopped, as the next four do."""
        return self.service.between_steps(Engine.picture)

    def free_cached(self) -> int:
        """Forget what no answer uses now; how many bytes other programs have more."""
        return self.service.between_steps(Engine.free_cached)

    def forget(self, chat: str) -> None:
        """Drop what only this chat left behind, on the disk as well."""
        self.service.between_steps(lambda engine: engine.forget(chat))

    def clear_disk(self) -> None:
        """Remove all blocks from the disk. Raises OSError, too."""
        self.service.between_steps(Engine.clear_disk)

    def keep_free(self, num_bytes: int) -> None:
        """Shrink or grow the pool, so that this much of the machine's memory is free as it is used now."""

        def resize(engine: Engine) -> None:
            device = detect() if self.runner.ops.device.type != PROCESSOR else detect_processor()
            room = engine.held_bytes + device.memory_available - num_bytes
            engine.resize(room if num_bytes else None)

        self.service.between_steps(resize)

    def _warm_up(self) -> None:
        """Compile or load every kernel, render the template once, and see that tokens come out."""
        try:
            for probe in _PROBES:
                for part in self.submit(probe):
                    if isinstance(part, Finish) and part.reason is FinishReason.ERROR:
                        raise EngineError(part.error)
            self.free_cached()  # nobody will ask that again
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Cancel what runs, save what chats left behind, end the threads and the helper process."""
        self.service.close()
        if self.tiers:
            self.tiers.close(save=not self.stats().fault)
        self.renderer.close()
        if self.cache:
            self.cache.close()
        self.runner.close()


def caution_of(tokenizer: Tokenizer) -> str:
    """See LLM.caution."""
    return NO_TEMPLATE if tokenizer.chat_template is None else ""
