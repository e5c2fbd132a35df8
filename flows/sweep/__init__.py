"""Sweeps: a grid of settings, a study, methods on one text, seeds of a recipe compared with a published row."""
