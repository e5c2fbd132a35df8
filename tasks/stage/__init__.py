"""What carries every stage: caching, records, what a person sees, the machine, stopping."""
