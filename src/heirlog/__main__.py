"""`python -m heirlog`: the commands."""

from heirlog.cli.main import main

main()
