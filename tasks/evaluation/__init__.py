"""Evaluation of encoders: one file for each kind of evaluation, and shared code."""
