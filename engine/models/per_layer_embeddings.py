"""Per-layer embeddings, as Gemma 4's small models have them: beside `hidden`, each layer gets P values of its
own for each token.

    inputs = (scale * table[tokens] + norm(projection(embedding))) / sqrt(2)          before the first layer
    hidden += post(output(act(gate(hidden)) * the layer's inputs))                    at each layer's end

The table is as large as the rest of the model, but of a token only one row is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from kernels import Activation, ForwardBatch, Norm, Ops, Packed

SHARE = 2**-0.5  # of the table's row, and of what the embedding says


@dataclass(frozen=True, slots=True)
class EmbeddingBuffers:
    """Static buffers, sized for the largest step."""

    inputs: Tensor  # [max T, layers * P]
    projected: Tensor  # [max T, layers * P]
    gates: Tensor  # [max T, P]
    gated: Tensor  # activation [max T, P]

    @staticmethod
    def make(ops: Ops, max_tokens: int, num_layers: int, size: int) -> EmbeddingBuffers:
        """For `size` values a layer."""
        wide, narrow = (max_tokens, num_layers * size), (max_tokens, size)
        return EmbeddingBuffers(
            ops.hidden(*wide), ops.hidden(*wide), ops.hidden(*narrow), ops.activation(*narrow)
        )


@dataclass(frozen=True, slots=True)
class PerLayerEmbeddings:
    """The model's part."""

    table: Packed  # [vocabulary, layers * P]
    projection: Packed  # [layers * P, E]
    norm: Norm  # of each layer's P values
    scale: float  # of the table's rows

    def write(self, ops: Ops, batch: ForwardBatch, hidden: Tensor, buffers: EmbeddingBuffers) -> None:
        """All layers' inputs; hidden is the embedding still."""
        ops.embed(batch, self.table, buffers.inputs, self.scale)
        ops.norm_linear(batch, hidden, None, self.projection, buffers.projected)
        ops.add(batch, buffers.projected, buffers.inputs, self.norm, SHARE, SHARE)


@dataclass(frozen=True, slots=True)
class LayerEmbedding:
    """A layer's part."""

    columns: slice  # of the inputs
    gate: Packed  # [P, E]
    output: Packed  # [E, P]
    post_norm: Norm

    def add(
        self,
        ops: Ops,
        batch: ForwardBatch,
        hidden: Tensor,
        buffers: EmbeddingBuffers,
        activation: Activation,
        factor: float,
    ) -> None:
        """Take the layer's inputs in; `factor`: of all of hidden, afterwards."""
        ops.norm_linear(batch, hidden, None, self.gate, buffers.gates)
        ops.gate(batch, buffers.gates, buffers.inputs[:, self.columns], buffers.gated, activation)
        ops.linear_add(batch, buffers.gated, self.output, hidden, self.post_norm, factor, factor)
