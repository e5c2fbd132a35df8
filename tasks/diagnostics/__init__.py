"""Checks and measurements of a machine, outside any run: `bsl doctor`, `bsl bench`."""
