"""Declarations of datasets known by name, a file for each family."""
