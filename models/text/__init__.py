"""Text: normalisation, stable sentence ids, duplicates, and the corpus built from them."""
