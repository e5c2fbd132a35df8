"""Access to file systems: atomic writes, digests, safe names, URLs without passwords, error messages."""
