"""Use an encoder: semantic search, near duplicates, and compression to small and fast forms."""
