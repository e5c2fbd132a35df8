"""Evaluations that fine-tune an encoder: STS-B over seeds, AFS over folds."""
