"""Declared data sets by family."""
