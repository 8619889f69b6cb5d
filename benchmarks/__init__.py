"""Measured claims: every number that the project states about itself comes from here.

`python -m benchmarks NAME` prints a table, and as the last line JSON for scripts.
"""
