"""Result files of other benchmarks, read as calls and judged by our own rules."""
