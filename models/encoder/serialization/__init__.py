"""The folder format of sentence-transformers: reading and writing it."""
