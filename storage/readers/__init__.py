"""Read files as frames: text, JSON lines, CSV/TSV, Parquet, Arrow; recognise the columns of NLI and STS sets."""
