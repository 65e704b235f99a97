"""Fixtures that all tests of the command line can ask for."""

from shops import friedman, shop

__all__ = ["friedman", "shop"]
