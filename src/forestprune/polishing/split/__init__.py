"""Splits of a small forest chosen anew, one tree after the other, all others fixed."""
