"""Where rows end up in the trees of a forest."""
