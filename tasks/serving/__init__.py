"""An encoder in use: search, near duplicates, and its small and fast forms, measured."""
