"""The stages and contents of reports, comparisons, studies and model cards."""
