"""What a card does with this project's work: whether it is right, how fast, and which share of the card's limits."""
