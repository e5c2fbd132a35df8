"""`bsl bench`: whether this machine computes right, how fast, and which share of its limits; a section a file."""
