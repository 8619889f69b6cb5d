"""What a GPU says of kernels/triton, in one run of under ten minutes: right, how fast, faster than whom.

`python -m benchmarks.gpu_check` on a machine with a card, nothing else running there; `--dry-run` goes
through the same code without one, small, in Triton's interpreter. No network, no downloads: weights are
random.
"""
