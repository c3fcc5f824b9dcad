"""The active controller: requests in, metadata records out, and the answer once they are committed.

One file per subject of KIP-966 and its neighbours; each handler reads the speculative image and returns the records to
append with the answer to give. `controller.Controller` owns the image, the journals and the clock. Only `node` and the
floors above it may import this package; `broker` never does.
"""
