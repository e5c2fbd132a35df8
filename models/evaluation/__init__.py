"""Figures about embeddings: STS correlations, their intervals, the geometry on the sphere."""
