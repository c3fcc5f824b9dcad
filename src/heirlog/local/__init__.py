"""Floor 8: a cluster of node processes on this machine.

    layout       the files of a data folder; `properties` reads and writes each server.properties
    data_folder  one command at a time, also where the folder was copied or moved
    format       log directories before a node's first start
    ports        reserved ports of nodes
    processes    start, pause, stop and kill of nodes; `ready` knows when they serve
    cluster      all of it as `Cluster`, with power cuts: what tests and drills use

Commands, the pytest plug-in and the drills import this package, and it imports none of them.
"""
