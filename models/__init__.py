"""Everything that computes: text, translation, networks, losses, training, metrics. Knows no Prefect and no store."""
