"""Unpacks a gzip file, so that it can be read by several threads at once."""

import zlib
from pathlib import Path

_PIECE_BYTES = 1 << 20
_GZIP = 31  # zlib's window bits for a gzip header


def gunzip(packed: Path, plain: Path) -> None:
    """Writes the unpacked bytes of a file to another.

    Several members may follow one another, as in a file that was appended to.

    Raises:
        OSError: a file cannot be read or written.
        EOFError, zlib.error: the packed file ends early, or is damaged.
    """
    with packed.open("rb") as file, plain.open("wb") as out:
        member, rest = zlib.decompressobj(_GZIP), file.read(_PIECE_BYTES)
        while rest:
            out.write(member.decompress(rest))
            rest = member.unused_data or file.read(_PIECE_BYTES)
            if member.eof and (rest := rest.lstrip(b"\0")):  # what pads a tape
                member = zlib.decompressobj(_GZIP)
        if not member.eof:
            raise EOFError(f"{packed} ends early")
