"""The active controller: it takes requests, appends metadata records, and answers once they are committed.

Each subject of KIP-966 and of its neighbours has one file. A handler reads the speculative image; it returns the
records to append and the answer to give. `controller.Controller` owns the image, the journals and the clock. Only
`node` and the floors above it may import this package; `broker` never does.
"""
