"""Base of all computation: precision, devices, processes, random state, tables larger than memory, progress."""
