"""Tables from files: CSV, Parquet and Arrow; the rows and columns that a model takes."""
