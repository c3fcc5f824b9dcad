"""Scripts of unclean recovery. `catalogue.py` says what each of them is about and lists them all.

Floor 7, a part of the simulator: imported by `sim.scenarios` and by tests.
"""
