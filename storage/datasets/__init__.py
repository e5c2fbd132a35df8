"""Datasets known by name, a family a file."""
