"""The store: an artifact drafted, published, verified, found, collected; keys and references."""
