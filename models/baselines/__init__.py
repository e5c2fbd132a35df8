"""What BSL is compared with."""
