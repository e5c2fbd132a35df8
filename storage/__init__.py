"""Everything that knows paths, bytes and schemas: artifacts, sources, assets. Knows no Prefect and no networks."""
