"""Linear classifiers on frozen embeddings: SentEval's transfer tasks under its own rule and solved exactly."""
