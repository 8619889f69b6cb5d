"""The same model as a Q4_0 file, the 4-bit form that llama.cpp is fastest with: `quantize.py FROM TO`.

Made by llama.cpp's own quantizer from the values of the given file. What is coarser in it than in the given
file is coarser for good: it is a measure of speed, not of quality.
"""

from __future__ import annotations

import ctypes
import sys

import llama_cpp as lib

source, target = sys.argv[1:]
lib.llama_backend_init()
options = lib.llama_model_quantize_default_params()
options.ftype, options.allow_requantize = lib.LLAMA_FTYPE_MOSTLY_Q4_0, True
if lib.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(options)):
    sys.exit(f"llama.cpp cannot quantize {source}")
