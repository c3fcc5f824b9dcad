"""The image of the cluster: brokers, topics, partitions, configs, features, and the rules for reading them.

Applying metadata records is the only way the image changes. Controllers and brokers read it alike; this floor
imports `heirlog.protocol` only, and every floor above may import it.
"""
