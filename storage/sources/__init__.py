"""Sources as a user names them: found, fingerprinted, read."""
