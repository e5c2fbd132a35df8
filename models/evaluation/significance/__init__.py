"""Confidence intervals and significance tests of scores: over pairs, seeds and units such as documents."""
