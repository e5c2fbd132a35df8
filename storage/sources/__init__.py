"""Find, fingerprint and read sources of text, labels, models and word vectors."""
