"""Every served GGUF type, converted exactly: the bits of gguf-py's dequantize, on random and real data."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from engine.checkpoints import Checkpoint, read_gguf
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.formats import rope_rows, to_vector, to_weight
from engine.formats.costs import GGUF
from engine.formats.gguf import MATRICES, to_matrix
from tests.tiny_models import neighbours, random_rows, write_tiny_gguf

# Where the float16 scales and minima of a block stand.
SCALES_AT = {
    **{"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "IQ4_NL": (0,)},
    **{"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_XS": (0,)},
    "MXFP4": (),
}
QUANTIZABLE = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4")  # by gguf-py
SHAPES = [(1, 256), (7, 512), (3, 2048), (2100, 256)]


def dequantized(raw: np.ndarray, type_name: str) -> np.ndarray:
    return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[type_name])


def random_bytes(type_name: str, shape: tuple[int, int], seed: int = 2) -> np.ndarray:
    """Blocks with all bits in use, also those that no quantizer writes; only scales are kept finite."""
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[type_name]]
    raw = np.random.default_rng(seed).integers(0, 256, (shape[0], shape[1] // block, size), np.uint8)
    for at in SCALES_AT[type_name]:
        raw[..., at + 1] &= 0xAF  # a float16 below 16, infinity impossible
    if type_name == "MXFP4":
        raw[..., 0] %= 140  # up to 2^11
    return raw.reshape(shape[0], -1)


def test_each_type_is_tested() -> None:
    assert {*SCALES_AT, "F32", "F16", "BF16"} == set(MATRICES) == set(GGUF)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("type_name", SCALES_AT)
def test_any_bytes_convert_exactly(type_name: str, shape: tuple[int, int]) -> None:
    raw = random_bytes(type_name, shape)
    raw.flags.writeable = False  # as a mapped file's
    weight = to_matrix(raw, type_name, shape)
    assert type(weight) is GGUF[type_name][0] and weight.shape == shape
    assert np.array_equal(weight.dequantize().numpy(), dequantized(raw, type_name))


@pytest.mark.parametrize("type_name", QUANTIZABLE)
def test_quantized_numbers_convert_exactly(type_name: str) -> None:
    raw = random_rows(type_name, (70, 512), 0.02, np.random.default_rng(1)).view(np.uint8).reshape(70, -1)
    weight = to_matrix(raw, type_name, (70, 512))
    assert np.array_equal(weight.dequantize().numpy(), dequantized(raw, type_name))


@pytest.mark.parametrize("shape", [(4, 512), (1, 256)])
@pytest.mark.parametrize("type_name", MATRICES)
def test_tensors_are_contiguous_and_their_own(type_name: str, shape: tuple[int, int]) -> None:
    """Nothing may point into the file, which is closed after loading."""
    if type_name in SCALES_AT:
        raw = random_bytes(type_name, shape)
    else:
        raw = (
            random_rows(type_name, shape, 1.0, np.random.default_rng(1)).view(np.uint8).reshape(shape[0], -1)
        )
    weight = to_matrix(raw, type_name, shape)
    before = weight.dequantize()
    raw[:] = 0
    assert torch.equal(weight.dequantize(), before)
    parts = [getattr(weight, field) for field in type(weight).__slots__]
    assert all(part.is_contiguous() for part in parts if isinstance(part, torch.Tensor))


def test_equals_gguf_py_on_the_starter_model(starter_model: Path) -> None:
    with read_gguf(starter_model) as checkpoint:
        for name, tensor in checkpoint.tensors.items():
            raw = checkpoint.raw(name)
            if len(tensor.shape) == 1:
                found = to_vector(checkpoint, name, tensor.shape[0])
                assert np.array_equal(found.numpy(), raw.view(np.float32))
            else:
                rows = np.arange(min(1000, len(raw)))
                weight = to_weight(
                    checkpoint, name.removesuffix(".weight"), (len(rows), tensor.shape[1]), rows
                )
                assert np.array_equal(weight.dequantize().numpy(), dequantized(raw[rows], tensor.type)), name


def test_other_types_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match=r"IQ2_XS are not served; these are: F32, F16, BF16, Q4_0"):
        to_matrix(np.zeros((1, 74), np.uint8), "IQ2_XS", (1, 256))


@pytest.mark.parametrize("type_name,at", [(name, at) for name, places in SCALES_AT.items() for at in places])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scales_that_are_not_finite(type_name: str, at: int, bad: float) -> None:
    raw = random_bytes(type_name, (2, 256))
    raw[1, at : at + 2] = np.frombuffer(np.float16(bad).tobytes(), np.uint8)
    with pytest.raises(BadCheckpoint, match=r"1 of \d+ scales"):
        to_matrix(raw, type_name, (2, 256))


@pytest.mark.parametrize("type_name", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("bad", [[np.nan], [np.inf, -np.inf]])
def test_weights_that_are_not_finite(type_name: str, bad: list[float]) -> None:
    values = np.ones((2, 64), np.float32)
    values[1, : len(bad)] = bad
    raw = gguf.quants.quantize(values, gguf.GGMLQuantizationType[type_name]).view(np.uint8).reshape(2, -1)
    with pytest.raises(BadCheckpoint, match=rf"{len(bad)} of 128 weights"):
        to_matrix(raw, type_name, (2, 64))


@pytest.mark.parametrize("type_name,largest", [("Q4_0", 8192), ("Q5_0", 4096)])
def test_a_scale_too_large_for_its_minimum(type_name: str, largest: int) -> None:
    raw = random_bytes(type_name, (1, 32))
    raw[0, :2] = np.frombuffer(np.float16(largest).tobytes(), np.uint8)
    with pytest.raises(BadCheckpoint, match="1 of 1 scales"):
        to_matrix(raw, type_name, (1, 32))


def test_a_scale_too_large_for_the_kernels() -> None:
    raw = random_bytes("MXFP4", (1, 32))
    raw[0, 0] = 200
    with pytest.raises(BadCheckpoint, match=r"a scale is 4.7.*e.21; none is above 65504"):
        to_matrix(raw, "MXFP4", (1, 32))


@pytest.fixture
def vectors(tmp_path: Path) -> Checkpoint:
    """The same vector in each float type, some broken ones, one of a type that vectors don't have."""
    values = np.array([1.5, -2.0, 0.0, 3e4] * 8, np.float32)
    writer = gguf.GGUFWriter(tmp_path / "vectors.gguf", "llama")
    for kind in ("F32", "F16", "BF16", "Q8_0"):
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(kind.name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.add_tensor("broken", np.array([1, np.nan, np.inf, 0], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read_gguf(tmp_path / "vectors.gguf")


def test_vectors_become_float32(vectors: Checkpoint) -> None:
    for name in ("F32", "F16", "BF16"):
        result = to_vector(vectors, name, 32)
        assert result.dtype == torch.float32 and result.shape == (32,)
        torch.testing.assert_close(result[:4], torch.tensor([1.5, -2.0, 0.0, 3e4]), rtol=0.01, atol=0)
    assert to_vector(vectors, "F32", 2, np.array([1, 0])).tolist() == [-2.0, 1.5]
    vectors.close()


def test_broken_vectors_are_refused(vectors: Checkpoint) -> None:
    with pytest.raises(BadCheckpoint, match="2 of 4 values of broken"):
        to_vector(vectors, "broken", 4)
    with pytest.raises(UnsupportedModel, match="Q8_0 has type Q8_0; these are served: F32, F16, BF16"):
        to_vector(vectors, "Q8_0", 32)
    with pytest.raises(BadCheckpoint, match=r"F32 is \[32\], expected \[33\]"):
        to_vector(vectors, "F32", 33)
    with pytest.raises(BadCheckpoint, match=r"F32 is \[32\], expected \[41\]"):
        to_vector(vectors, "F32", 1, np.array([40]))
    with pytest.raises(BadCheckpoint, match=r"vectors\.gguf has no tensor F64"):
        to_vector(vectors, "F64", 32)
    vectors.close()


@pytest.fixture
def matrices(tmp_path: Path) -> Checkpoint:
    """A matrix, and a stack of three."""
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(tmp_path / "matrices.gguf", "llama")
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, shape in (("one.weight", (6, 64)), ("stack.weight", (3, 6, 64))):
        values = random.normal(0, 1, shape).astype(np.float32)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read_gguf(tmp_path / "matrices.gguf")


def test_rows_and_experts(matrices: Checkpoint) -> None:
    whole = dequantized(matrices.raw("stack.weight"), "Q8_0")
    for expert in range(3):
        weight = to_weight(matrices, "stack", (6, 64), expert=expert)
        assert np.array_equal(weight.dequantize().numpy(), whole[expert])
    rows = np.array([5, 0, 3])
    weight = to_weight(matrices, "stack", (3, 64), rows=rows, expert=1)
    assert np.array_equal(weight.dequantize().numpy(), whole[1][rows])
    matrices.close()


def test_matrices_of_another_shape(matrices: Checkpoint) -> None:
    for name, shape, rows, expert in (
        ("one", (7, 64), None, None),
        ("one", (6, 32), None, None),
        ("one", (1, 64), np.array([6]), None),
        ("one", (6, 64), None, 0),
        ("stack", (6, 64), None, None),
        ("stack", (6, 64), None, 3),
        ("stack", (5, 64), None, 0),
    ):
        with pytest.raises(
            BadCheckpoint, match=rf"{name}\.weight is \[.*6, 64\], expected|one has 6 rows, 7"
        ):
            to_weight(matrices, name, shape, rows, expert)
    with pytest.raises(BadCheckpoint, match=r"matrices\.gguf has no tensor two\.weight"):
        to_weight(matrices, "two", (6, 64))
    matrices.close()


def test_rope_rows_undo_llama_cpps_order() -> None:
    rows = np.arange(3 * 8)
    assert np.array_equal(neighbours(rows, 3)[rope_rows(3, 8)], rows)
    assert rope_rows(1, 8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


@pytest.mark.parametrize("quantization", ["F16", "Q4_1", "Q4_K"])
def test_tiny_models_are_their_files_oracle(tmp_path: Path, quantization: str) -> None:
    """The factory that other tests stand on: its transformers model computes with what its file holds."""
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf", quantization=quantization)
    attention, heads = tiny.model.model.layers[1].self_attn, tiny.model.config.num_attention_heads
    with read_gguf(tiny.path) as checkpoint:
        for name, wanted in {
            "blk.1.attn_q.weight": attention.q_proj.weight,
            "blk.1.attn_output.weight": attention.o_proj.weight,
            "token_embd.weight": tiny.model.model.embed_tokens.weight,
        }.items():
            height, width = checkpoint.tensors[name].shape
            rows = rope_rows(heads, height // heads) if "attn_q" in name else None
            weight = to_weight(checkpoint, name.removesuffix(".weight"), (height, width), rows)
            assert torch.equal(weight.dequantize(), wanted)
