"""Native models in and out: one file a library, loaded through forestprune.forest.registry."""
