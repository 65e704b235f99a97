"""New weights, or new leaf values, for trees that are pruned already: the option `polish`."""
