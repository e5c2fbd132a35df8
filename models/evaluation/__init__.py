"""Evaluation of embeddings: scores of every kind of set, confidence intervals, comparisons and verdicts."""
