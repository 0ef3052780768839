"""Which policy follows from a log, and which could not have fired in it."""
