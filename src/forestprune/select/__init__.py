"""Candidates, and choosing among them by budgets and validation rows."""
