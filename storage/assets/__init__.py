"""Models and texts that travel in the package."""
