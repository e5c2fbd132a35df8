"""Sentence encoders: loading, tokenisation, backbones, pooling, heads and saving."""
