"""The default rule: any subtree that contains the root may be kept."""
