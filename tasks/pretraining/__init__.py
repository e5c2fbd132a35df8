"""Rebuild the embedded models: train, distil, pack, verify."""
