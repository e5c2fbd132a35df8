"""File formats to frames: text, JSON lines, CSV/TSV, Parquet, Arrow; columns of NLI and STS sets."""
