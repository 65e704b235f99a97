"""Compiled loops. Plain arrays in and out; nothing here knows what a Forest is."""
