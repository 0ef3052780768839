"""How answers look on the wire: one module for each API, after vLLM 0.32."""
