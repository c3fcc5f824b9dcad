"""Floor 8: the commands. One file per command group; `main.main` is what `heirlog` and `python -m heirlog` run.

`layout` (a local cluster's files) and `processes` (its node processes) serve `heirlog up` and `heirlog.testing` alike.
Nothing else imports this package.
"""
