"""A page as data: sections of words, tables and figures.

A sheet is made from a JSON document and nothing else, so that every figure on it is a
number of that document. `html` writes it as a file, the dashboard shows it on a screen.
"""

from dataclasses import dataclass
from typing import Any, Literal

Cell = str | int | float | None
"""None = not known."""

Mood = Literal["good", "bad", "unsure", "plain"]
"""How a word is to be coloured; the word itself carries the meaning."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: its heading.
        unit: of its numbers; "" when they have none, or for text.
        kind: "share" is a fraction that is shown in per cent.
    """

    name: str
    unit: str = ""
    kind: Literal["text", "number", "share"] = "text"

    @property
    def title(self) -> str:
        """The heading with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under named columns.

    Attributes:
        caption: what the table holds, in one line.
        columns: one for each cell of a row.
        rows: values as in the document, not yet written out.
        note: what a reader has to know of them; "" = nothing.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot, what is to be seen on it, and the numbers behind it.

    Attributes:
        title: its heading.
        says: one or two sentences that tell what it shows, numbers included; who
            cannot see the plot reads these.
        chart: Vega-Lite, with its values inside.
        table: the values that the chart draws.
    """

    title: str
    says: str
    chart: dict[str, Any]
    table: Table


@dataclass(frozen=True, slots=True)
class Rows:
    """Names with what is said of each, in order."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Words:
    """A sentence or some; `label` stands before it, as NOTICE or SIMULATED do."""

    text: str
    label: str = ""
    mood: Mood = "plain"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a fixed question: a check, or a reporting item.

    Attributes:
        answer: one word or a few, such as "ok", "no", "cannot be asked", "pass".
        name: the question.
        says: what the answer rests on, in sentences.
        mood: of the answer.
    """

    answer: str
    name: str
    says: tuple[str, ...]
    mood: Mood


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers that belong together, in order."""

    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Text that is shown letter by letter, such as a configuration."""

    text: str


Block = Words | Rows | Table | Figure | Answers | Source


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading.
        blocks: in order.
        level: 1 = a part of the page; 2 = a part of the section before it.
    """

    title: str
    blocks: tuple[Block, ...]
    level: Literal[1, 2] = 1


@dataclass(frozen=True, slots=True)
class Sheet:
    """A whole page.

    Attributes:
        title: what it is about.
        word: the finding or the verdict, in one word; "" when there are several.
        mood: of that word.
        lead: what a person needs who reads only the first screen.
        sections: the rest.
        command: what a shell takes to make the page's numbers again; "" = not known.
    """

    title: str
    word: str
    mood: Mood
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]
    command: str = ""


MOODS: dict[str, Mood] = {
    "LIVE": "good",
    "INERT": "bad",
    "UNKNOWN": "unsure",
    "BASELINE": "plain",
    "SHADOW": "plain",
    "better": "good",
    "worse": "bad",
    "equivalent": "plain",
    "inconclusive": "unsure",
    "void": "bad",
    "ok": "good",
    "no": "bad",
    "cannot be asked": "unsure",
    "pass": "good",
    "fail": "bad",
    "not carried": "unsure",
}
"""The mood of each word that a report, a comparison or a check can come to."""


def mood_of(word: str) -> Mood:
    """How a finding, a verdict or an answer is coloured; "plain" for any other word."""
    return MOODS.get(word, "plain")
