"""The embedded models made anew: trained, distilled, packed, verified."""
