"""From the bytes of raw sources to frames: text, JSON lines, CSV/TSV, Parquet, and the shapes of NLI and STS sets."""
