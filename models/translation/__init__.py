"""Machine translation of sentences, in the order given."""
