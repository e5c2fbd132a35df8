"""What a run says about itself: a picture of its training and a page of Markdown."""
