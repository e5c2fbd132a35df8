"""Linear classifiers on frozen embeddings: SentEval's transfer tasks, trained as in SentEval or solved exactly."""
