"""The one place that runs DuckDB.

A `Store` is a private database in a private folder: it reads no settings of the user's,
loads nothing from outside, and what does not fit into memory goes into its folder.
In a file tables are compressed: ten million lines take less memory and less time so.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from admitperf.core.errors import AdmitPerfError, ConfigError, LogError
from admitperf.reports.extra import needed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_LIMIT = "1GB"
"""Plain choice: reads ten million lines and leaves room beside an engine's host."""

LEAST_MEMORY_MB = 700
"""Origin: `benchmarks/reports.py`; with 512 MB, ten million lines ran out of memory."""

MOST_MEMORY_MB = 1e9
"""Plain choice: a petabyte, far below what the number of bytes could no longer hold."""

MOST_THREADS = 8
"""Plain choice: each reading thread holds buffers of its own."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])I?B?\s*", re.IGNORECASE)
_MEGABYTES = {"K": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}

Row = tuple[Any, ...]
_Settings = dict[str, str | bool | int | float | list[str]]


class UnreadableError(AdmitPerfError):
    """DuckDB could not read what it was given; the text is its first line."""


class Store:
    """A private database. Leave its `with` block to close it.

    Args:
        folder: where it may write; the caller removes it.
        memory_limit: such as "2GB"; None = `MEMORY_LIMIT`.

    Raises:
        MissingExtra: DuckDB is not installed.
        ConfigError: the limit is no size, or not one this machine could have.
        LogError: its folder takes no file, as on a full disk.
    """

    def __init__(self, folder: Path, memory_limit: str | None = None) -> None:
        duckdb = needed("duckdb")
        self._error, self._full = duckdb.Error, duckdb.OutOfMemoryException
        self.memory_limit = MEMORY_LIMIT if memory_limit is None else memory_limit
        self.folder = folder
        settings = _settings(folder, self.memory_limit)
        try:
            self._connection: DuckDBPyConnection = duckdb.connect(
                str(folder / "tables.duckdb"), config=settings
            )
        except duckdb.Error as error:
            raise LogError(_first_line(error)) from None

    def rows(self, sql: str, given: Mapping[str, object] | None = None) -> list[Row]:
        """What a query answers.

        Args:
            sql: one statement.
            given: values of its `$name` parameters.

        Raises:
            UnreadableError: DuckDB refuses it, as for a line that is no JSON.
            ConfigError: it takes more memory than the limit and the disk allow.
            KeyboardInterrupt: the person at the keyboard wants no answer.
        """
        try:
            return self._connection.execute(sql, given).fetchall()
        except self._full:
            few = f"{self.memory_limit} is not enough for this log; allow more"
            raise ConfigError("memory limit", [few]) from None
        except self._error as error:
            raise UnreadableError(_first_line(error)) from None
        except RuntimeError as error:  # how DuckDB hands on a signal
            if "interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise

    def table(self, name: str, columns: Mapping[str, Sequence[object]]) -> None:
        """Makes a small table from columns of equal length.

        Args:
            name: the table's.
            columns: values by column, as `name TYPE`.
        """
        types = ", ".join(columns)
        self.rows(f"CREATE OR REPLACE TABLE {name} ({types})")
        if not any(columns.values()):
            return
        given = {f"p{place}": list(one) for place, one in enumerate(columns.values())}
        values = ", ".join(f"unnest(${place})" for place in given)
        self.rows(f"INSERT INTO {name} SELECT {values}", given)

    def close(self) -> None:
        """Closes the database; its files are in the folder."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def checked_limit(text: str) -> str:
    """A memory limit as DuckDB takes it.

    Args:
        text: a number with a unit, such as "2GB".

    Raises:
        ConfigError: it is no size, below `LEAST_MEMORY_MB` or above `MOST_MEMORY_MB`.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ConfigError("memory limit", [f"{text!r} is no size such as 2GB"])
    megabytes = float(found[1]) * _MEGABYTES[found[2].upper()]
    if megabytes < LEAST_MEMORY_MB:
        raise ConfigError("memory limit", [f"{text} is below {LEAST_MEMORY_MB}MB"])
    if megabytes > MOST_MEMORY_MB:
        raise ConfigError("memory limit", [f"{text} is more than any machine has"])
    return f"{megabytes:.0f}MB"


def _settings(folder: Path, memory_limit: str) -> _Settings:
    return {
        "memory_limit": checked_limit(memory_limit),
        "temp_directory": str(folder / "spill"),
        "threads": max(1, min(os.cpu_count() or 1, MOST_THREADS)),
        "home_directory": str(folder),
        "extension_directory": str(folder / "extensions"),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
    }


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def by_run(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Rows without their first value, by that value: the number of a run."""
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for number, *rest in rows:
        found[number].append(tuple(rest))
    return found
