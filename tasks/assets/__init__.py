"""The models that travel in the package: trained, packed, pinned, verified."""
