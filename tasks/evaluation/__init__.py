"""Encoders to figures: a file for each kind of evaluation, and what they share."""
