"""Encoders found and read; sentences to vectors, at once, in shards or reused; TF-IDF and post-hoc transforms."""
