"""What an encoder needs to speak of words: masks, a head over the vocabulary and its loss, a causal pass."""
