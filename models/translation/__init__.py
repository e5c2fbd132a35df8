"""Machine translation of lists of sentences, with the order kept."""
