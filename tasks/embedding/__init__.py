"""Find encoders; embed sentences at once, in shards or from existing vectors; TF-IDF and post-hoc transforms."""
