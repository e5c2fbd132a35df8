"""BSL's two-branch network (Zhang et al., ACL 2021, section 3): predictor, target network, loss."""
