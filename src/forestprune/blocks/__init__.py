"""Rows by the block, from files, batches or Dask, gone through a few times and never kept."""
