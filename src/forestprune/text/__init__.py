"""Forests in words and as formulas."""

from forestprune.text.text import identifiers, to_formula, to_text

__all__ = ["identifiers", "to_formula", "to_text"]
