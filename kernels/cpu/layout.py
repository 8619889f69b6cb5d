"""How packed weights and activations lie in memory: the numbers packing, tiles and embedding agree on.

A strip is 16 rows, a pair two strips, a group 32 inputs, a super the SPAN groups that share a float16 scale.
A packed matrix is [pairs, supers, SUPER bytes]: one stream, read from end to end. A super is SPAN groups of
PAIR bytes, then the shared scales [2 strips, 16] float16 (INT4K: then the shared minima). Below: a group.
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
#
# An activation group is a cache line: 32 int8; their scale; -MAGIC * scale; scale * their sum; and three
# integers a dot product starts from, which undo the offset of unsigned weights: MAGIC_BITS - 32 * sum of the
# first and of the second half, MAGIC_BITS - 128 * sum.

from __future__ import annotations

INT4, INT4K, INT6, INT8 = range(4)
LARGEST = (15, 15, 63, 255)  # of the unsigned values
SPAN = (1, 8, 8, 1)
PAIR = (640, 576, 832, 1088)
SUPER = (640, 8 * 576 + 128, 8 * 832 + 64, 1088)
STRIP = (256, 256, 384, 512)
SCALES = (512, 512, 768, 1024)  # where a group's scales start

GROUP, ROWS = 32, 32  # inputs of a group, rows of a pair
ACT = 64  # bytes of an activation group
MAGIC, MAGIC_BITS = 12582912.0, 0x4B400000


class Act:
    """Where in an activation group its numbers stand."""

    SCALE, MINUS, SUM, HALVES, WHOLE = 32, 36, 40, 44, 52
