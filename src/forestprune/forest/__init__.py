"""The neutral ensemble: what it is, how it is built and checked, what rows it takes."""
