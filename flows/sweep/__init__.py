"""Sweeps: a grid of settings, a study, methods on one text, a recipe over seeds compared with a published row."""
