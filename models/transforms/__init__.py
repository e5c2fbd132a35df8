"""Transforms that are fitted on finished vectors: whitening, BERT-flow."""
