"""Sentence encoders: a local transformer, its pooling, its texts as tokens, its export."""
