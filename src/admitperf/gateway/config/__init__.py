"""What a gateway is told: one YAML file, or options that make the same document.

`document` makes plain values of a text, `schema` makes a `Configured` of plain values,
and `policies` makes the policies that it names. All that is wrong is said at once.
"""
