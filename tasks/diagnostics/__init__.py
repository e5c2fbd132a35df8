"""Checks of a machine, outside any run: `bsl doctor`."""
