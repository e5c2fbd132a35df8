"""Texts: normalised, identified, split, counted; documents in order, and their labels."""
