"""Sentences through translators: found and pinned, looked up in their memory, translated in shards."""
