"""Check a device's results and measure its speed and its share of the hardware limits; a file per section."""
