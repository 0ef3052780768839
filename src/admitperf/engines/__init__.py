"""What each engine exposes, and how to read it.

`exposition` turns a page into series, one module per engine says which series supply
which signal, `catalogue` hands them to the signals, `readings` answers what a report
asks besides.
"""
