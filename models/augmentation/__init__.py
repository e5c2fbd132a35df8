"""Other ways of saying the same sentence: round trips through another language, and what joins them into views."""
