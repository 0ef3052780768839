"""An index over one raw mapping, so that a source finds its series by name.

A key is a bare name (`kv_cache_usage_perc`), a prefixed one (`vllm:…`, `vllm_…`,
`ray_vllm_…`) or a full series (`name{engine="1"}`). Names are compared after every
character outside `[A-Za-z0-9_]` became `_`, since exporters disagree about the colon.
The index of a set of keys is kept, because an engine prints the same keys every time.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, lru_cache

from admitperf.core.found import Found

Labels = dict[str, str]
Where = tuple[tuple[str, tuple[str, ...]], ...]
Identity = tuple[tuple[str, str], ...]
_Entry = tuple[str, Labels, str, Identity]

REPEAT_LABELS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"})
"""Labels whose series show one quantity several times: the largest counts.

Origin: SGLang prints each tensor/pipeline/expert rank with
`--enable-metrics-for-all-schedulers`; vLLM 0.9.2-0.11.0 and TensorRT-LLM print one
gauge per process (`pid`), of which all but one are stale or never set.
"""

REPLICA_LABEL = "replica"
"""What tells the series of one endpoint from those of another on a page made of
several; see `scrape.pool`."""

_ENGINE_PREFIXES = ("vllm_", "sglang_", "lmdeploy_", "llamacpp_", "trtllm_")
_PLANS_KEPT = 32
_NOT_NAME = re.compile(r"[^A-Za-z0-9_]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_COMBINE: dict[str, Callable[[Collection[float]], float]] = {
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "max": max,
    "min": min,
}


@lru_cache(maxsize=8192)
def canonical(name: str) -> str:
    """The spelling names are compared in: `ray_vllm:x` and `vllm:x` are `vllm_x`."""
    plain = _NOT_NAME.sub("_", name.strip())
    bare = plain.removeprefix("ray_")
    return bare if bare.startswith(_ENGINE_PREFIXES) else plain


def parse_labels(text: str) -> Labels:
    """The labels inside the braces of a series, escapes undone.

    What cannot be read as a label is left out; a quoted name without a value
    (Prometheus 3) is the metric's name and is returned under `__name__`.
    """
    labels: Labels = {}
    at, label = 0, _label()
    while at < len(text):
        match = label.match(text, at)
        if match is None:
            at = _after_comma(text, at)
            continue
        at = match.end()
        quoted, plain, value = match.groups()
        name = _unescape(quoted) if quoted is not None else plain
        if value is not None:
            labels[name] = _unescape(value)
        elif quoted is not None:
            labels["__name__"] = name
    return labels


@cache
def _label() -> re.Pattern[str]:
    """Compiled when first needed, so that an import is not held up by it."""
    return re.compile(
        r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s=,"{}]++))'
        r'\s*+(?:=\s*+"((?:[^"\\]|\\.)*+)")?\s*+(?:,|$)'
    )


def _after_comma(text: str, at: int) -> int:
    comma = text.find(",", at)
    return len(text) if comma < 0 else comma + 1


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], text)


class Series:
    """All series of one raw mapping, found by canonical name.

    Args:
        raw: any mapping of metric key to number. Keys that are no text and values
            that are no number are skipped.
    """

    __slots__ = ("_index", "raw")

    def __init__(self, raw: Mapping[str, object]) -> None:
        self.raw = raw
        self._index = _index_of(raw)

    def names(self) -> Iterable[str]:
        """The canonical names present."""
        return self._index.keys()

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """The names present that look most like `name`, best first."""
        from difflib import get_close_matches  # noqa: PLC0415  for errors and reports only

        words = set(name.split("_"))
        close = get_close_matches(name, self.names(), count, 0.5)
        shared = sorted(
            (n for n in self.names() if n not in close and words & set(n.split("_"))),
            key=lambda n: (-len(words & set(n.split("_"))), n),
        )
        return (close + shared)[:count]

    def samples(self, name: str) -> list[tuple[Labels, float]]:
        """Labels and value of every series of this name; NaN and infinities included.

        Looked up as given, with and without `_total`, then the same without the
        engine's prefix. The same labels twice count once: the last one wins.
        """
        return [(labels, value) for labels, _, value in self._read(name).values()]

    def identified(self, name: str) -> list[tuple[Identity, Labels, float]]:
        """The same, each with its labels in order, by which it is known again."""
        return [
            (identity, labels, value)
            for identity, (labels, _, value) in self._read(name).items()
        ]

    def combine(  # noqa: PLR0913  the choices of a source, by keyword
        self,
        name: str,
        how: str,
        *,
        low: float = -math.inf,
        high: float = math.inf,
        scale: float = 1.0,
        where: Where = (),
        unless: tuple[str, ...] = (),
    ) -> Found | None:
        """One value out of all series of a name.

        First the largest over `REPEAT_LABELS`, then `how` (sum, max, min, mean) over
        the rest. A value outside [low, high] after scaling is skipped, never clamped.

        Args:
            where: (label, allowed values): a series counts when it lacks the label or
                carries an allowed value.
            unless: labels that make the whole name unusable.

        Returns:
            None when no series is there; a value of None when none was usable.
        """
        read = self._read(name)
        if not read:
            return None
        parts: dict[str, float] = {}
        skipped: list[str] = []
        seen = False
        for labels, part, value in read.values():
            if any(label in labels for label in unless):
                return None
            if not all(labels.get(key, ok[0]) in ok for key, ok in where):
                continue
            seen = True
            scaled = value * scale
            if low <= scaled <= high and math.isfinite(scaled):
                parts[part] = max(parts.get(part, scaled), scaled)
            else:
                skipped.append(f"{name}{{{part}}} = {value:g}")
        if not parts:
            return Found(None, {}, tuple(skipped)) if seen else None
        total = _fold(how, parts.values())
        if math.isinf(total):
            return Found(None, {}, (*skipped, f"{name} = {total:g}"))
        return Found(total, parts if len(parts) > 1 else {}, tuple(skipped))

    def _read(self, name: str) -> dict[Identity, tuple[Labels, str, float]]:
        return {
            identity: (labels, part, value)
            for key, labels, part, identity in self._entries(name)
            if (value := _number(self.raw.get(key))) is not None
        }

    def _entries(self, name: str) -> list[_Entry]:
        found = self._index.found
        entries = found.get(name)
        if entries is None:
            entries = found[name] = self._search(name)
        return entries

    def _search(self, name: str) -> list[_Entry]:
        for spelling in _spellings(name):
            entries = self._index.entries(spelling)
            if entries is not None:
                return entries
        return []


@lru_cache(maxsize=1024)
def _spellings(name: str) -> tuple[str, ...]:
    name = canonical(name)
    found = [name, _other_total(name)]
    for prefix in _ENGINE_PREFIXES:
        if name.startswith(prefix):
            bare = name.removeprefix(prefix)
            found += [bare, _other_total(bare)]
    return tuple(found)


def _other_total(name: str) -> str:
    return name.removesuffix("_total") if name.endswith("_total") else name + "_total"


def _fold(how: str, values: Collection[float]) -> float:
    try:
        return _COMBINE[how](values)
    except OverflowError:
        return math.inf


def _number(value: object) -> float | None:
    if type(value) is float:
        return value
    if value is None or isinstance(value, (bool, str, bytes)):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001  what cannot be a float is no number
        return None


_plans: "dict[tuple[str, ...], _Index]" = {}


def _index_of(raw: Mapping[str, object]) -> "_Index":
    keys = tuple(raw)
    try:
        return _plans[keys]
    except KeyError:
        pass
    except TypeError:
        return _build(key for key in keys if isinstance(key, str))
    if len(_plans) >= _PLANS_KEPT:
        _plans.clear()
    return _plans.setdefault(keys, _build(key for key in keys if isinstance(key, str)))


class _Index(dict[str, list[_Entry]]):
    """Label text is parsed when a name is first asked for.

    A page has 600 series, a policy reads five names.
    """

    def __init__(self, texts: dict[str, list[tuple[str, str]]]) -> None:
        super().__init__({name: [] for name in texts})
        self._texts = texts
        # What a name asked for comes to, in whichever spelling it is there.
        self.found: dict[str, list[_Entry]] = {}

    def entries(self, name: str) -> list[_Entry] | None:
        pairs = self._texts.get(name)
        if pairs is None:
            return None
        entries = self[name]
        if not entries:
            entries = self[name] = _name_parts(pairs)
        return entries


def _build(keys: Iterable[str]) -> _Index:
    texts: dict[str, list[tuple[str, str]]] = {}
    for key in keys:
        name, brace, rest = key.partition("{")
        label_text = rest.rstrip().removesuffix("}") if brace else ""
        if not name.strip():
            name = parse_labels(label_text).get("__name__", "")
        texts.setdefault(canonical(name), []).append((key, label_text))
    return _Index(texts)


def _name_parts(pairs: list[tuple[str, str]]) -> list[_Entry]:
    parsed = [(key, parse_labels(text)) for key, text in pairs]
    split = [
        {k: v for k, v in labels.items() if k not in REPEAT_LABELS}
        for _, labels in parsed
    ]
    telling = sorted(
        name
        for name in {name for labels in split for name in labels}
        if len({labels.get(name) for labels in split}) > 1
    )
    return [
        (
            key,
            labels,
            ",".join(f"{n}={own[n]}" for n in telling if n in own),
            tuple(sorted(labels.items())),
        )
        for (key, labels), own in zip(parsed, split, strict=True)
    ]
