"""Benchmarks: of a device (`python -m benchmarks gpu|cpu`), of speed against peers, and of the quality of results."""
