"""The objective, and the descent that minimises it."""
