"""The share coordinator: what each share group has finished of each partition, in `__share_group_state` (KIP-932).

The rules (`batches`, `state`) are functions over frozen values. Only the rest of the broker may import this package.
"""
