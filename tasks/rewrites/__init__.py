"""Views that need no translator, a file a method; tasks/rewrite.py has their table."""
