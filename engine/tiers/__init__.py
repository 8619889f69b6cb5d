"""Tiers: where blocks live that the device has no room for, and how they come back.

    device ---- given up, or idle ---> host (memory) and disk (segment files)
       ^------- wanted by a prefix ------'

tiers.py decides, host.py and disk.py keep; store.py and segments.py are the disk's files, opening.py puts all
of it beside an engine. docs/TIERS.md says why it is so.
"""
