"""Translate sentences: find and pin translators, look up their memories, translate the rest in shards."""
