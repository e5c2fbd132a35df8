"""Training objectives behind one interface: BSL and the baselines that it is compared with."""
