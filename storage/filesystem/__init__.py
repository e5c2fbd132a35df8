"""File-system helpers of the store: atomic files, digests, safe names, URLs without passwords, error messages."""
