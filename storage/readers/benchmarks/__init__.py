"""Read benchmark files in the formats of their authors."""
