"""Models for people: text, formulas, pictures, reports."""
