"""Objectives that predict words, and the masks, head and decoder that pre-training shares with them."""
