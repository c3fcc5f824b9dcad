"""Data in and out of a cluster with Spark: the data source `heirlog`, and pipelines on it.

Floor 8, the extra `heirlog[spark]`: the only package that imports pyspark, pyarrow and numba. No node imports it.

    kernels.py, decode.py, encode.py   record batches to and from Arrow, without Spark
"""
