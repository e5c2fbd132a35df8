"""Paths, bytes and schemas: artifacts, sources, assets. Imports neither Prefect nor torch."""
