"""How packed weights and activations lie in memory: the numbers packing, tiles and embedding agree on.

A strip is 16 rows, a pair two strips, a group 32 inputs, a super the SPAN groups that share a float16 scale.
A packed matrix is [pairs, supers, SUPER bytes]: one stream, read from end to end. A super is SPAN groups of
PAIR bytes, then the shared scales [2 strips, 16] float16 (with minima: then the shared ones). Below: a group.
MAGIC is 1.5 * 2^23: an integer below 2^22 added to its bits is added to its value, so a sum of integers that
starts from MAGIC_BITS is a float without a conversion.
"""

# A group holds the values of two strips, STRIP bytes each, then its scales:
#   INT4   [4 j, 16 rows, 4 b] nibbles: low half input 4j + b, high half input 16 + 4j + b;
#          scales [2 strips, 16] float16, minima [2, 16] float16
#   INT4K  the same nibbles; scales [2, 16] uint8, minima [2, 16] uint8, to be multiplied by the shared ones
#   INT6   [2 halves, 2 c, 16 rows, 4 b] nibbles: inputs 16 half + 8c + b and 16 half + 8c + 4 + b; then two
#          high bits [2 halves, 16 rows, 4 b]: bits 2j of a byte belong to input 16 half + 4j + b;
#          scales [2 halves, 2, 16] int8, to be multiplied by the shared ones
#   INT8   [8 j, 16 rows, 4 b] bytes, 128 added: input 4j + b; scales [2, 16] float16
#   INT4Z  as INT4, but the minima are to be multiplied by the scales: they are -zero
#   IQ4    INT4's nibbles, which are indices to a table; scales [2, 16] float16; FP4 alike, of another table
#   INT5   INT4's nibbles, then one high bit [16 rows, 4 b]: bits 4 half + j of a byte; the rest as INT4
#   INT5K  INT5's values; the rest as INT4K
#   INT2K  INT6's high bits alone; [2 halves, 2, 16] bytes: scale below, minimum above, times the shared ones
#   INT3K  two low bits as INT2K, one high bit as INT5; scales as INT6
#
# An activation group is a cache line: 32 int8; their scale; -MAGIC * scale; scale * their sum; and three
# integers a dot product starts from, which undo the offset of unsigned weights: MAGIC_BITS - 32 * sum of the
# first and of the second half, MAGIC_BITS - 128 * sum.

from __future__ import annotations

from ..weights import TABLES

INT4, INT4K, INT6, INT8, INT4Z, INT5, INT5K, INT2K, INT3K, IQ4, FP4 = range(11)
TABLED = {IQ4: TABLES["iq4"], FP4: TABLES["fp4"]}  # 128 is added to what is looked up, as to INT8's values
LARGEST = (15, 15, 63, 255, 15, 31, 31, 3, 56, 241, 140)  # of the unsigned values; INT3K's are read times 8
SPAN = (1, 8, 8, 1, 1, 1, 8, 8, 8, 1, 1)
PAIR = (640, 576, 832, 1088, 640, 768, 704, 320, 448, 576, 576)
SUPER = tuple(n * pair + rest for n, pair, rest in zip(SPAN, PAIR, (0, 128, 64, 0, 0, 0, 128, 128, 64, 0, 0)))
STRIP = (256, 256, 384, 512, 256, 320, 320, 128, 192, 256, 256)
SCALES = (512, 512, 768, 1024, 512, 640, 640, 256, 384, 512, 512)  # where a group's scales start

GROUP, ROWS = 32, 32  # inputs of a group, rows of a pair
ACT = 64  # bytes of an activation group
AHEAD = 24576  # bytes fetched in advance, into L2, where loads come in no order that hardware could follow
MAGIC, MAGIC_BITS = 12582912.0, 0x4B400000


class Act:
    """Where in an activation group its numbers stand."""

    SCALE, MINUS, SUM, HALVES, WHOLE = 32, 36, 40, 44, 52
