"""The artifact store: draft, publish, verify, look up and garbage-collect artifacts; their keys and references."""
