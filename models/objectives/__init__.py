"""What a training run minimises: BSL and what it is compared with, behind one interface."""
