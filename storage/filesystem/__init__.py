"""Beneath the store: atomic files, digests, safe names, URLs without passwords, errors of the system."""
