"""`bsl bench`: check a device's results, measure its speed and its share of the hardware limits; a file per section."""
