"""The best subset of trees, by a heuristic or by mixed-integer programming."""
