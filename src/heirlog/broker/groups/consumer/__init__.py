"""Consumer groups of the protocol of KIP-848: the coordinator assigns, and members follow one by one.

`values` and `state` say what a group is, `reconciliation`, `target_assignment` and `subscriptions` what changes and
why; they are pure. `heartbeats` turns a request into records, `protocol` writes them and keeps the timers.
"""
