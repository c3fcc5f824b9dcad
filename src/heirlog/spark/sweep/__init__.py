"""Sweeps: many runs of the scenario `durability` (`heirlog.sim.durability`) on Spark, and what they show.

    grid.py         which runs a sweep consists of
    folder.py       where they are kept: Parquet files that are complete or do not exist
    job.py          the runs that are not there yet, on Spark
    task.py         one run, on a worker
    statistics.py   intervals of confidence
    summary.py      the runs of each cell together
    tables.py, plots.py, page.py    the page for people

Only `job.py` needs PySpark.
"""
