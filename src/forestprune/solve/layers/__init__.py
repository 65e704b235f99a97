"""The paper's own rule: trees are cut at a depth."""
