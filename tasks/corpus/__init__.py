"""Stages from sources to sentences: corpus, NLI pairs, passages of the user's text, labels, evaluation sets."""
