"""Forests in words and as formulas."""

from forestprune.text.constraints import constraints, constraints_in_words
from forestprune.text.formula import to_formula
from forestprune.text.meaning import meaning
from forestprune.text.names import identifiers
from forestprune.text.words import to_text

__all__ = ["constraints", "constraints_in_words", "identifiers", "meaning", "to_formula", "to_text"]
