"""The contract between the engine and the kernels: one `Ops` per device, six calls a layer in most models.

A forward pass is written once, as calls of these ops on static buffers, and recorded: `record(forward)`
gives back a function that runs it again for whatever the batch's buffers hold by then. On processors a
record is a table that all threads walk together; the reference runs the calls as they come. An op is as
large as the largest fusion any backend makes: a backend may split one, never join two.

Shapes: T tokens of a step, S sequences, R rows whose logits are wanted, H heads, D values a head, E the
hidden width. Buffers are made for the largest step; `ForwardBatch.counts` says how much of them is valid
now. Backends know nothing of sequences, chats or models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from .weights import Matrix


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """The static input buffers of a step, all int64. Filled by the engine before each run; ops only read
    them.
    """

    counts: Tensor  # [3]: T, S, R of this step
    token_ids: Tensor  # [max T]
    positions: Tensor  # [max T] place of each token in its sequence
    cu_lens: Tensor  # [max S + 1] prefix sums of the sequences' new tokens
    context_lens: Tensor  # [max S] tokens of each sequence that are in the cache once this step has run
    slots: tuple[Tensor, ...]  # one per page kind, [max T]: block_id * block_size + offset of each token
    block_tables: tuple[Tensor, ...]  # one per page kind, [max S, max blocks]
    logit_rows: Tensor  # [max R] which tokens' logits are wanted
    host: ForwardBatch | None = None  # the same numbers on the processor, where these lie elsewhere


@dataclass(frozen=True, slots=True)
class KVLayer:
    """Where one layer keeps its keys and values, and how it looks at them."""

    pool: Tensor  # [blocks, layers, 2, kv heads, block_size * D]; a block is one run of bytes (pages.py)
    layer: int  # index into the pool's second dimension
    kind: int  # index into ForwardBatch.slots and block_tables
    block_size: int  # a multiple of 16
    num_heads: int
    head_dim: int
    window: int = 0  # a token sees itself and the window - 1 tokens before it; 0: all
    soft_cap: float = 0.0  # scores become cap * tanh(score / cap); 0: as they are
    scale: float = 0.0  # of scores, before the cap; 0: 1 / sqrt(D)
    scales: Tensor | None = None  # float16 [blocks, layers, 2, kv heads, block_size], of values of 8 bits
    sinks: Tensor | None = (
        None  # float32 [heads]: scores beside the keys', which take weight and give nothing
    )

    @property
    def num_kv_heads(self) -> int:
        return self.pool.shape[3]

    @property
    def score_scale(self) -> float:
        return self.scale or self.head_dim**-0.5


@dataclass(frozen=True, slots=True)
class Norm:
    """RMSNorm: x * gain / sqrt(mean(x^2) + eps)."""

    gain: Tensor  # float32, one value for each that is normalized together
    eps: float


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embedding, halves form: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin) over the first 2 * R2
    values of a head. R2 = 0: nothing is turned.
    """

    cos: Tensor  # float32 [max positions, R2]
    sin: Tensor  # float32 [max positions, R2]


# What a backend's `pack` returns: matrices with one input, stacked by rows, in the backend's own form.
Packed = Any
# Of a gate: act(gate) * up. "gelu_tanh" is GELU in its tanh form. "clamped_swiglu" is gpt-oss's: with the
# gate at most 7, and up between -7 and 7, gate / (1 + e^(-1.702 gate)) * (up + 1).
Activation = Literal["silu", "gelu_tanh", "clamped_swiglu"]


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture's matrices: the router [X, E], and of each of X experts its gate and up, and its down."""

    router: Packed
    gate_up: tuple[Packed, ...]  # pack(gated=True), [2 F, E]
    down: tuple[Packed, ...]  # [E, F]
    top_k: int  # experts a token goes through: those with the largest softmax of the router's rows
    normalized: bool  # their shares are divided by their sum
    activation: Activation = "silu"
    router_norm: Norm | None = None  # of what the router reads; None: the experts' own
    scales: Tensor | None = None  # float32 [X]: times an expert's share


@dataclass(frozen=True, slots=True)
class Stored:
    """A packed matrix taken apart, to be kept outside this process: `facts` fit into JSON."""

    facts: dict[str, Any]
    arrays: tuple[NDArray[Any], ...]


class Storage(Protocol):
    """How a backend's packed matrices are kept and come back without being packed again."""

    layout: str  # changes whenever what `pack` makes of a matrix may have changed

    def take_apart(self, packed: Packed) -> Stored:
        """The matrix's own arrays, not copied."""
        ...

    def put_together(self, stored: Stored) -> Packed:
        """The same matrix, over arrays that may be read-only and begin on 64-byte borders. Raises ValueError,
        KeyError or TypeError for what `take_apart` never gave.
        """
        ...


@dataclass(frozen=True, slots=True)
class Draw:
    """What one row of logits is drawn with. `slot`: whose counts its penalties look at; -1: it has none."""

    temperature: float
    top_p: float
    min_p: float
    repetition: float
    frequency: float
    presence: float
    top_k: int
    slot: int
    share: float  # in [0, 1): where in the candidates' weights the token lies


class Sampler(Protocol):
    """Draws tokens where the logits lie. Nothing here waits for the device."""

    def set(self, draws: Sequence[Draw]) -> None:
        """What the first rows are drawn with."""
        ...

    def sample(self, logits: Tensor, out: Tensor) -> None:
        """out[r], int64: a token of row r; -1 where its logits are no numbers."""
        ...

    def begin(self, slot: int, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """A slot's counts are those of this sequence from now on."""
        ...

    def count(self, out: Tensor) -> None:
        """Each row's token is one more of its slot's answer, where it has a slot; no two rows share one."""
        ...

    def fill(self, token_ids: Tensor, out: Tensor) -> None:
        """An id of -1 - r becomes out[r], or token 0 where that is no token."""
        ...


class Ops(Protocol):
    """One device's kernels. Activations (from `activation`) are opaque: a backend may keep them quantized;
    only its ops read them.
    """

    name: str
    device: torch.device  # where buffers and the KV pool lie
    kv_dtype: torch.dtype  # element type of the KV pool
    block_size: int  # the best one here; all multiples of 16 up to 128 work
    storage: Storage | None  # None: packed matrices cannot be kept
    records_by_size: bool  # a record serves steps of as many answers as it was made for, or fewer
    workspace_bytes: int  # of the device, besides weights, pools and buffers
    depth: int  # steps that may be in flight while the next is scheduled: 0, or 1 where it computes by itself

    def pack(self, weights: Sequence[Matrix], bias: Tensor | None = None, gated: bool = False) -> Packed:
        """Stack matrices [N_i, K] of any formats by rows, with an optional float32 bias [sum N_i]. `gated`:
        exactly two, gate and up.
        """
        ...

    def activation(self, rows: int, width: int) -> Tensor:
        """An opaque buffer for `rows` tokens of `width` values, in this backend's own element type."""
        ...

    def hidden(self, rows: int, width: int) -> Tensor:
        """A plain zeroed float buffer [rows, width]: the residual stream, q/k/v, logits."""
        ...

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        """Take down the ops that `forward` calls; the result runs them on what the batch holds then. May be
        called several times.
        """
        ...

    def embed(self, batch: ForwardBatch, table: Packed, hidden: Tensor, scale: float = 1.0) -> None:
        """hidden[t] = scale * row token_ids[t] of the table [vocabulary, E]."""
        ...

    def norm_linear(
        self, batch: ForwardBatch, hidden: Tensor, norm: Norm | None, weight: Packed, out: Tensor
    ) -> None:
        """out[t] = weight @ norm(hidden[t]) + bias; out is plain float [max T, N]. None: hidden as it is."""
        ...

    def rope_write(
        self,
        batch: ForwardBatch,
        qkv: Tensor,
        rope: Rope,
        kv: KVLayer,
        q: Tensor,
        q_norm: Norm | None = None,
        k_norm: Norm | None = None,
        v_norm: Norm | None = None,
    ) -> None:
        """qkv [max T, (H + 2 KV) * D]: normalize queries, keys and values, turn queries into the activation q
        [max T, H * D], keys and values into their slots. A gain of D values normalizes each head (values: no
        other), a longer one a token's whole queries or keys. qkv [max T, H * D] has queries alone: nothing is
        written. What is left in qkv is the backend's affair.
        """
        ...

    def attention(self, batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor) -> None:
        """out[t] = softmax(scale * q k) v over the cached tokens 0 to positions[t] of t's sequence, or those
        in the window; out: activation [max T, H * D].
        """
        ...

    def linear_add(
        self,
        batch: ForwardBatch,
        x: Tensor,
        weight: Packed,
        hidden: Tensor,
        norm: Norm | None = None,
        scale: float = 1.0,
        keep: float = 1.0,
    ) -> None:
        """hidden[t] = keep * hidden[t] + scale * norm(weight @ x[t] + bias); x is an activation.
        Where keep is 0, what hidden was is not looked at.
        """
        ...

    def add(
        self,
        batch: ForwardBatch,
        x: Tensor,
        hidden: Tensor,
        norm: Norm | None = None,
        scale: float = 1.0,
        keep: float = 1.0,
    ) -> None:
        """hidden[t] = keep * hidden[t] + scale * norm(x[t]); x is plain float of the same width. A gain
        that is shorter normalizes each run of as many values.
        """
        ...

    def norm_gated_linear(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        weight: Packed,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        """out[t] = activation(gate @ n) * (up @ n), n = norm(hidden[t]); weight from pack(gated=True), out an
        activation [max T, N / 2].
        """
        ...

    def gate(
        self,
        batch: ForwardBatch,
        x: Tensor,
        up: Tensor,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        """out[t] = activation(x[t]) * up[t]: both plain float [max T, N], `up` may be columns of a wider
        buffer; out an activation.
        """
        ...

    def norm_experts_add(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        experts: Experts,
        out: Tensor | None = None,
    ) -> None:
        """hidden[t] += sum of share_x * down_x @ (act(gate_x @ n) * (up_x @ n)) over t's experts x, n =
        norm(hidden[t]): stands where norm_gated_linear and linear_add do in other layers. With a plain buffer
        `out` [max T, E] that gets the sum, and hidden stays.
        """
        ...

    def logits(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm,
        weight: Packed,
        out: Tensor,
        soft_cap: float = 0.0,
    ) -> None:
        """out[r] = weight @ norm(hidden[logit_rows[r]]) + bias for the R rows wanted, capped like scores; out
        is plain float [max R, vocabulary].
        """
        ...

    def sampler(self, rows: int, vocabulary: int, slots: int) -> Sampler | None:
        """What draws tokens for up to so many rows of logits, of which so many sequences may have penalties;
        None where the host does.
        """
        ...

    def scratch_bytes(self, heads: int, head_dim: int, tokens: int, positions: int, vocabulary: int) -> int:
        """What ops keep of the device beside all buffers, of the sizes of a model: so many tokens in a step,
        and positions of a text.
        """
        ...

    def copy_blocks(self, pool: Tensor, source: Sequence[int], target: Sequence[int]) -> None:
        """Copy whole blocks of a pool at once, outside any record: copy on write."""
        ...

    def free_memory(self) -> int | None:
        """Bytes of the device that nobody has taken, this moment; None where a plan needs no correction."""
        ...

    def close(self) -> None:
        """Stop the backend's threads."""
        ...
