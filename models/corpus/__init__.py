"""Corpora: normalisation, sentence ids, sentence splitting, statistics; documents in order, and labels."""
