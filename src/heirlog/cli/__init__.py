"""Floor 10: the commands. One file per command group; `main.main` is what `heirlog` and `python -m heirlog` run.

Nothing else imports this package.
"""
