"""A sweep for people: the stage that compares its systems, their costs, the advice and the page."""
