"""Many machines: Dask distributed places the halves of a trial on hosts, starts them, and notices their loss."""
