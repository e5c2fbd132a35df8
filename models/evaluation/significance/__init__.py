"""Intervals and tests of figures: over pairs, seeds and units that are drawn together."""
