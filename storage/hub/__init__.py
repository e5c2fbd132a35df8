"""Datasets, models and archives of the Hugging Face Hub, through its own clients and in their cache."""
