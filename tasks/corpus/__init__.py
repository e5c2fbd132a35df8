"""Sources to sentences: the corpus, NLI pairs, passages of own text and their labels, and the evaluation sets."""
