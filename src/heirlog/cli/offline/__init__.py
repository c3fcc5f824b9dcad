"""Reading the data folders of a node that does not run: what `heirlog doctor` and `heirlog dump` are made of.

Nothing here writes below the folders that it looks at. The rules of what is whole are those of `storage` and `raft`;
here they are asked, never written again.
"""
