"""Models and texts shipped in the package."""
