"""Pipelines that a user describes in one TOML file: topics or files, an optional SQL statement, topics or tables.

    spec.py      what the file says, as values
    load.py      reading it, and what is wrong in it, by line (sections.py, toml_lines.py)
    check.py     what can be checked before the start, including the SQL
    values.py    raw values into columns; rows that cannot be parsed are kept apart
    files.py     files that are complete or do not exist, and locks
    table.py     a directory of Parquet files that has each batch once, even if runs are killed
    lakes.py     Delta and Iceberg
    checkpoint.py   the content of a checkpoint, and its owner
    batch.py     what happens to one micro-batch
    run.py       the query around the batches
    report.py    what a run did (metrics.py: for Prometheus)
    compact.py   many small files of finished batches into few
    status.py    the progress of a pipeline, from its checkpoint and the brokers
    package.py   the archive that workers without heirlog need

Only `heirlog.cli` and programs of users import this; it needs the extra `heirlog[spark]`.
"""
