"""Pipelines that a person describes in one TOML file: topics or files, an optional SQL statement, topics or tables.

    spec.py      what the file says, as values
    load.py      reading it, and what is wrong in it, by line (sections.py, toml_lines.py)
    check.py     what can be found out before anything starts, the SQL included
    values.py    raw values into columns; rows that do not parse are kept apart
    files.py     files that are whole or not there, and locks
    table.py     a directory of Parquet that holds each batch once, whatever is killed when
    lakes.py     Delta and Iceberg
    checkpoint.py   the content of a checkpoint, and its owner
    batch.py     what happens to one micro-batch
    run.py       the query around the batches
    report.py    what a run did (metrics.py: for Prometheus)
    compact.py   many small files of finished batches into few
    status.py    how far a pipeline is, read from its checkpoint and the brokers
    package.py   the archive that workers without heirlog need

Only `heirlog.cli` and people's own programs import this; it needs the extra `heirlog[spark]`.
"""
