"""What an answer says while it passes: when it began, how it went on, how it ended.

`events` frames a stream, `shapes` are the parts of answers that are read, `read` says
what one of them means, `said` what an error means, `watch` puts it together.
"""
