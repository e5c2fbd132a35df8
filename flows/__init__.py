"""Order and recipes: which artifact is made from which. No file is opened and nothing is computed here."""
