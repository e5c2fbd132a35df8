"""Machine translation: sentences in one language in, sentences in another out, in the order they came."""
