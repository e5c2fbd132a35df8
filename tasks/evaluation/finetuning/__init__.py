"""Evaluations that fine-tune first: STS-B over seeds, AFS over folds."""
