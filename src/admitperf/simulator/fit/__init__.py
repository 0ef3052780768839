"""From recorded runs to an engine's model, and the model held against recorded runs.

    runs = [read("a.jsonl"), read("b.jsonl")]
    made = fitted(runs, name="mine")
    table = checked(made, read("c.jsonl"))

How it works and how far to trust it: docs/engine-model.md.
"""
