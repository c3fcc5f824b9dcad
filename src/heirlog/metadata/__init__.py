"""The image of the cluster: brokers, topics, partitions, configs, features, and the rules for reading them.

Only applied metadata records change the image. Controllers and brokers read it in the same way. This floor imports only
`heirlog.protocol`, and every floor above may import it.
"""
