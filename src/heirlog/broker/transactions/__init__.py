"""The transaction coordinator: what each transactional id may do next, and the markers that end its transactions.

The rules (`state`, `initialize`, `add_partitions`, `end`) are functions over frozen values. Only the rest of the broker
may import this package.
"""
