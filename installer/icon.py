"""The icon in the forms that systems want: icon.png, 256 pixels square, in Windows' and Apple's containers.

icon.png is drawn from ui/assets/mark.svg; a test compares the two.
"""

from __future__ import annotations

import struct


def ico(png: bytes) -> bytes:
    """One image of 256 pixels (written as 0) with 32 bits each, behind 22 bytes of header."""
    header = struct.pack("<HHH", 0, 1, 1)
    return header + struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(png), 22) + png


def icns(png: bytes) -> bytes:
    """One chunk, ic08: 256 pixels as PNG."""
    chunk = b"ic08" + struct.pack(">I", len(png) + 8) + png
    return b"icns" + struct.pack(">I", len(chunk) + 8) + chunk
