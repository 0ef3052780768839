"""What each word on a report, a comparison or a demo means. The one place for it.

`docs/reference/terms.md` is made from this list, and a test holds every heading and
column of a page against it.
"""

from dataclasses import dataclass

# A notion of the published survey of admission control, told in our own words.
SURVEY = "survey"


@dataclass(frozen=True, slots=True)
class Term:
    """One word that a page prints.

    Attributes:
        word: as it is printed.
        means: what it means there.
        also: other forms in which it is printed.
        origin: `SURVEY` when the notion comes from the survey; "" for the rest.
    """

    word: str
    means: str
    also: tuple[str, ...] = ()
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Terms that belong together.

    Attributes:
        title: what they are about.
        terms: in the order a newcomer needs them.
    """

    title: str
    terms: tuple[Term, ...]


GROUPS = (
    Group(
        "What is asked and answered",
        (
            Term(
                "attempt",
                "One try at a call; one decision in the log.",
                ("attempts", "by attempt"),
            ),
            Term(
                "call",
                "One wish of a client, also called a logical request: all attempts"
                " that share a logical id. An attempt without such an id counts as a"
                " call of its own.",
                ("calls", "by call", "logical request"),
            ),
            Term("task", "One user message and the calls that follow from it."),
            Term("session", "A conversation of tasks."),
            Term(
                "offered",
                "Everything that asked to be let in, refused or not. Refused work"
                " stays in every denominator that says offered.",
            ),
            Term(
                "admitted",
                "Answered with admit by the policy, or by its posture when it was"
                " blind.",
                ("admit",),
            ),
            Term(
                "defer",
                "Refused for now, with a wait after which to come back.",
                ("deferred",),
            ),
            Term("reject", "Refused, and coming back will not help.", ("rejected",)),
            Term("verdict", "What the policy said: admit, defer or reject."),
            Term(
                "reason",
                "The one word that says why. The status code follows from it alone.",
                ("verdict and reason",),
            ),
            Term("status", "The HTTP status of a refusal."),
            Term(
                "refused",
                "Deferred or rejected by the policy itself, not by its posture and not"
                " by the host. It would refuse, where nothing is enforced.",
                ("would refuse",),
            ),
            Term(
                "by the host",
                "Refused by the host without asking the policy, as a caller who is"
                " back before its time. It is offered and refused, and no firing of"
                " the policy.",
                ("host",),
            ),
            Term(
                "probe",
                "A refused request that the host let in all the same, to learn whether"
                " the refusal is still right.",
                ("probes",),
            ),
            Term(
                "held",
                "Deferred by the policy at first, and kept waiting by the host, which"
                " asked again until it let it in, turned it away, or its caller left."
                " It has one line, with the last answer; its times count from its"
                " arrival. That it waited is a firing of the policy.",
                ("left while held",),
            ),
            Term(
                "turned away",
                "Really sent off by the host: refused, by policy or posture, and"
                " enforced.",
                ("turned", "nobody turned away"),
            ),
            Term(
                "let in",
                "Passed on to the engine: admitted, not governed, or served although"
                " refused.",
            ),
            Term(
                "wait",
                "What a refused caller was told in Retry-After, in ms. Measured: from"
                " the drain of the last seconds. Default: no drain was known yet.",
                ("waits", "waits by origin"),
            ),
            Term(
                "outcome",
                "How a request that was let in ended, as the host reported it.",
                ("outcomes",),
            ),
        ),
    ),
    Group(
        "Could it have fired?",
        (
            Term(
                "finding",
                "One word on whether the policy could have fired: LIVE, INERT,"
                " UNKNOWN, BASELINE or SHADOW. It comes before every other number.",
                ("Could it have fired?", "fired"),
            ),
            Term(
                "LIVE",
                "It refused something, or deferred it so that it was held, and that"
                " was enforced.",
            ),
            Term(
                "INERT",
                "It ran and never answered anything but admit. Its numbers are those"
                " of no policy under another name.",
            ),
            Term(
                "UNKNOWN",
                "The log cannot say: no policy ran, or it decided without its signals.",
            ),
            Term("BASELINE", "It refuses nothing by design, and never fired."),
            Term(
                "SHADOW",
                "Nothing was enforced, or the host served what was refused. It reads:"
                " would have fired.",
            ),
            Term(
                "signal",
                "A quantity a policy may read, with a unit and a legal range. What"
                " nothing supplies is not known, never 0.",
                ("signals", "Which signals moved"),
            ),
            Term("unit", "What a signal is counted in."),
            Term(
                "gate",
                "One comparison of a policy: signal, operator, bound.",
                ("gates",),
            ),
            Term(
                "bound",
                "What a gate compares a value with. It may move, as under a"
                " controller: then its lowest and its highest are told.",
                ("lowest bound", "highest bound"),
            ),
            Term(
                "true",
                "The gate's comparison was. Its share is of the decisions it was"
                " evaluated on, those included that `and` and `or` passed over and the"
                " report completed from the same line's signals. Of a held request the"
                " last time it was asked about counts.",
                ("share",),
            ),
            Term(
                "nearest approach",
                "The smallest distance between a gate's value and its bound while it"
                " never changed its answer, in the unit of the signal.",
                ("nearest",),
            ),
            Term(
                "nearest value",
                "The value of a gate that came nearest to its bound.",
            ),
            Term(
                "joint",
                "The decision on which all gates together came nearest to true:"
                " the gate that was farthest off there, as a share of its bound.",
                ("together", "all true at once"),
            ),
            Term(
                "blind",
                "Decided without the signals it needs, with stale ones, or after an"
                " error. Above 1 % of decisions the finding is UNKNOWN.",
                ("made blind",),
            ),
            Term(
                "posture",
                "What answers while the policy is blind: degrade, admit, defer,"
                " reject or hold_last.",
            ),
            Term(
                "governed",
                "Inside the share that the policy's answers apply to (enforce).",
                ("enforced",),
            ),
            Term(
                "samples",
                "Readings of an engine on which a policy was asked with no request"
                " behind them, as `watch` does. No policy governed.",
                ("sample", "would fire"),
            ),
            Term(
                "facts carried",
                "Share of requests that came with each fact, such as their tokens.",
            ),
        ),
    ),
    Group(
        "What it cost",
        (
            Term(
                "SLO",
                "The bounds an answer must keep: ttft_ms, stall_ms, e2e_ms. All of"
                " them, or it is not met.",
                ("met the SLO",),
            ),
            Term(
                "goodput",
                "Met its SLO, of what was offered. A refusal counts as not met, and"
                " so does an answer that never came. Given by call on the user's"
                " clock where calls are known, else by attempt.",
                (),
                SURVEY,
            ),
            Term(
                "SLO attainment",
                "Met its SLO, of the attempts with an outcome. It rises when a policy"
                " refuses, so it never stands without goodput beside it.",
                ("attained",),
            ),
            Term(
                "ended well",
                "The answer ended properly, whatever its times. Others left, were"
                " refused by the engine, or failed.",
                ("n ok",),
            ),
            Term(
                "completed",
                "Ended well, and how many a second: over the time from the first"
                " arrival to the end of the last of them.",
            ),
            Term(
                "failed",
                "Let in, reported, and not ended well, neither by its caller nor by a"
                " refusal of the engine. It is in no latency, however fast it failed.",
            ),
            Term(
                "left",
                "Let in, and its caller left before the end (client_closed).",
            ),
            Term(
                "engine refused",
                "Let in, and refused by the engine itself (upstream_refused), with a"
                " status or in the stream.",
            ),
            Term(
                "truncated",
                "Ended well at its limit of tokens, and not by itself: finish reason"
                " length, max_tokens or max_output_tokens.",
            ),
            Term(
                "TTFT",
                "Time to first token in ms. Without more said: of answers that ended"
                " well, from the moment the host sent the request.",
                ("TTFT served", "TTFT p95", "service time", "p50 ms", "p95 ms"),
            ),
            Term(
                "user's clock",
                "TTFT from when a call's first attempt arrived, with every wait and"
                " retry in between.",
                ("TTFT, user", "p95 user"),
            ),
            Term(
                "last attempt's clock",
                "TTFT from when the attempt that was served arrived. It leaves out"
                " what the user waited before.",
                ("TTFT, last",),
            ),
            Term(
                "due time",
                "When a load generator meant to send a request. TTFT from it counts"
                " what the generator was late.",
                ("from due", "TTFT, due"),
            ),
            Term(
                "coordinated omission",
                "A generator that waits for slow answers sends less just then, so"
                " slowness is counted once where users would have met it many times."
                " The clock from the due time is free of it.",
            ),
            Term(
                "harness lag",
                "How much later than due requests were sent.",
                ("sent late",),
            ),
            Term(
                "stall",
                "The longest gap between two tokens of one answer, in ms.",
                ("stall_ms",),
            ),
            Term(
                "outputs",
                "Tokens that came, of the tokens asked for. When far fewer come, the"
                " load stays below plan.",
                ("output",),
            ),
        ),
    ),
    Group(
        "Load",
        (
            Term("rate", "Calls per second, or attempts where calls are not known."),
            Term("input tokens", "Size of the prompts, as the requests stated it."),
            Term("output asked", "The most output tokens each request allowed."),
            Term(
                "plan",
                "Hash of the planned load. Two runs with one hash were meant to face"
                " the same requests.",
                ("plan hash",),
            ),
            Term(
                "warm-up",
                "The first requests or seconds of a run, left out of every number and"
                " said to be.",
            ),
            Term(
                "capacity",
                "Calls per second that the deployment carries within its SLO, measured"
                " without admission control.",
            ),
        ),
    ),
    Group(
        "A benchmark",
        (
            Term(
                "planned call",
                "A call that the plan of a benchmark offers, whether or not it was"
                " asked. Where a log has them, goodput is of planned calls.",
                ("planned calls", "by planned call"),
            ),
            Term(
                "never asked",
                "A planned call whose session had ended before it, by a refusal or an"
                " error, or that the end of the run cut off. It counts as not met.",
                ("never sent",),
            ),
            Term(
                "ended",
                "How planned calls ended: answered; cancelled by their own caller;"
                " refused in the end; failed; never sent; unfinished when the run was"
                " over.",
            ),
            Term(
                "sessions",
                "Those that were completed: each of their calls was answered, or"
                " closed by its own caller after its first token.",
                ("session completion",),
            ),
            Term(
                "session goodput",
                "Sessions completed within three times their unloaded duration, of"
                " those the plan offered.",
                ("session_goodput",),
            ),
            Term(
                "work goodput",
                "Goodput with each call weighted by its work: new prompt tokens and"
                " answer tokens, as planned.",
                ("work_goodput",),
            ),
            Term(
                "wasted tokens",
                "Tokens the engine computed for calls that were not good, or for"
                " sessions that were not completed, of all it computed.",
            ),
            Term(
                "refusal latency",
                "From the instant a call was due to its final refusal.",
            ),
            Term(
                "TTFT offered",
                "TTFT on the user's clock over all offered calls; one without an"
                " answer counts as never.",
            ),
            Term(
                "client",
                "What callers do when refused: how often and when they come again,"
                " when they give up, and what a call without an answer ends. The same"
                " in all arms.",
                ("client model",),
            ),
            Term(
                "block",
                "One plan at one load: which calls, how long, at which instants. Every"
                " arm meets each block once.",
                ("blocks",),
            ),
            Term(
                "gain",
                "The claim that goodput rises against the baseline, mean over the loads"
                " from 1.2 times capacity on.",
            ),
            Term(
                "no harm",
                "The claim that goodput does not fall by the margin or more, mean over"
                " the loads up to 0.8 times capacity.",
            ),
            Term(
                "exploratory",
                "Shown as it is, and no claim is made of it.",
            ),
            Term(
                "A/A pair",
                "One policy under two names. What tells them apart is noise.",
            ),
            Term(
                "scored window",
                "The part of a run whose sessions count: those that began in it. What"
                " began before or after makes load only.",
            ),
        ),
    ),
    Group(
        "The seven reporting items",
        (
            Term(
                "signal liveness",
                "Over which range the quantity that the policy reads was seen to move,"
                " so that a policy that never could act is told from one that chose"
                " not to.",
                ("liveness",),
                SURVEY,
            ),
            Term(
                "capacity-relative load",
                "Load as a multiple of the deployment's own measured capacity; a bare"
                " rate says nothing to who has other hardware.",
                (),
                SURVEY,
            ),
            Term(
                "calibrated deadlines",
                "Bounds set relative to the latency of the same model on the same"
                " hardware without load.",
                (),
                SURVEY,
            ),
            Term(
                "repeats and spread",
                "How many runs of the same thing there are, three at the least, and"
                " how far apart they came out.",
                ("repeats", "repeat"),
                SURVEY,
            ),
            Term(
                "parameter provenance",
                "Where each parameter's value comes from.",
                ("provenance", "parameters", "parameter", "origin"),
                SURVEY,
            ),
            Term(
                "metric definition",
                "What the headline number divides by, and whether a refusal counts as"
                " a miss. Here: by offered, and yes.",
                (),
                SURVEY,
            ),
            Term(
                "full configuration",
                "Model, engine and its version, hardware, workload, SLO and the"
                " baseline that was really run.",
                (
                    "configuration",
                    "model",
                    "engine",
                    "engine_version",
                    "hardware",
                    "workload",
                ),
                SURVEY,
            ),
            Term("value", "What a parameter is set to."),
            Term("pass", "The log carries the item, and it is in order."),
            Term("fail", "The log carries the item, and it is not in order."),
            Term(
                "not carried",
                "This log does not carry the fact. What to record stands beside it.",
            ),
            Term(
                "fitted",
                "Provenance: set from measurements of this deployment.",
                (),
                SURVEY,
            ),
            Term(
                "inherited",
                "Provenance: taken from a paper or another deployment.",
                (),
                SURVEY,
            ),
            Term("default", "Provenance: nobody chose it.", (), SURVEY),
            Term(
                "unstated",
                "Provenance: given by the host, which did not say where from.",
                ("given, origin not stated",),
            ),
        ),
    ),
    Group(
        "A policy's place in the survey's taxonomy",
        (
            Term(
                "decision unit",
                "What one answer is about: a request, an agent session or a tenant.",
                (),
                SURVEY,
            ),
            Term(
                "setting",
                "Online: requests come when they come. Offline: all are there.",
                (),
                SURVEY,
            ),
            Term(
                "SLO awareness",
                "What the policy protects: deadline, latency, throughput, fairness,"
                " cost or none.",
                ("slo_awareness",),
                SURVEY,
            ),
            Term(
                "signal quantity",
                "The kind of quantity it decides on, such as kv_pressure.",
                ("signal_quantity",),
                SURVEY,
            ),
            Term(
                "signal structure",
                "How it combines them: one scalar, a dual gate, a composite (lp) or a"
                " formal bound.",
                ("signal_structure",),
                SURVEY,
            ),
            Term(
                "metadata assumed",
                "What requests must carry for it to work, such as a session id.",
                ("metadata_assumed",),
                SURVEY,
            ),
        ),
    ),
    Group(
        "Numbers",
        (
            Term(
                "p50, p95, p99",
                "Percentiles by nearest rank. p95 is withheld below 20 values and p99"
                " below 100, where each would be the maximum.",
                ("p50", "p95", "p99", "percentiles", "n<20", "too few samples"),
            ),
            Term(
                "nearest rank",
                "The smallest value with at least that share of values at or below"
                " it. Always a value that was seen.",
            ),
            Term("min", "The smallest value.", ("low",)),
            Term("max", "The largest value.", ("high",)),
            Term("n", "How many values stand behind a number."),
            Term(
                "bin",
                "An equal slice of time, or a slice of a range of values. A bin of a"
                " signal keeps the smallest and the largest value beside the mean, so"
                " that no spike is lost.",
                ("bins",),
            ),
            Term("from", "Where a bin begins: in s from the first decision, or in ms."),
            Term("to", "Where a bin ends."),
            Term("--", "Not known, or not supplied. Never 0."),
            Term(
                "at least",
                "Outcomes are missing and count as not met, so the true value may be"
                " higher.",
            ),
        ),
    ),
    Group(
        "Comparing",
        (
            Term("experiment", "Runs that claim the same conditions."),
            Term(
                "run",
                "All that one policy with one configuration decided, in every process"
                " that shares its header.",
                ("runs", "name", "run id", "policy and run"),
            ),
            Term("arm", "One policy in an experiment.", ("arms",)),
            Term("baseline", "An arm that refuses nothing by design."),
            Term(
                "pair",
                "Two runs, one of each arm, that faced the same load. Repeats are"
                " paired by the name of the run, else in order.",
                ("pairs",),
            ),
            Term(
                "difference",
                "Arm less baseline, within one pair, in goodput of offered.",
                ("by pair", "effect"),
            ),
            Term(
                "mean",
                "The arithmetic mean; in a comparison of the differences over the"
                " pairs.",
            ),
            Term(
                "SD",
                "Standard deviation of the differences: how much the pairs disagree.",
            ),
            Term(
                "t interval",
                "Where the mean difference lies with 95 % (or 90 %) confidence, from"
                " Student's t over the pairs.",
                ("95 % interval", "90 % interval", "paired t interval"),
            ),
            Term(
                "sign-flip p",
                "Share of all ways to flip the signs of the differences that give a"
                " mean as far from 0 as the one seen. Exact; below 6 pairs it cannot"
                " fall under 0.05 and is not asked.",
                ("sign flip", "sign flips"),
            ),
            Term(
                "ranges do not overlap",
                "Every run of one arm lies above every run of the other. With 3 to 5"
                " pairs it stands in for the sign-flip p, beside the t interval.",
                ("ranges", "separate", "the arms separate"),
            ),
            Term(
                "MDE",
                "Minimum detectable effect: the smallest true difference that this"
                " many pairs with this spread show in 4 of 5 experiments.",
            ),
            Term(
                "margin",
                "The smallest difference that matters in practice, 0.01 of goodput"
                " unless given.",
            ),
            Term(
                "better",
                "The interval lies above 0, the p-value is under 0.05 and the mean"
                " reaches the margin.",
            ),
            Term("worse", "The same below 0."),
            Term("equivalent", "The 90 % interval lies inside the margin."),
            Term("not worse", "A loss of the margin or more is ruled out."),
            Term(
                "Holm",
                "Several arms that claim a gain each get a larger p, so that a false"
                " alarm among all of them stays as rare as for one.",
            ),
            Term("needed", "How many pairs would settle what these leave open."),
            Term(
                "median",
                "The middle repeat, by nearest rank; beside it the lowest and the"
                " highest.",
                ("lowest", "highest"),
            ),
            Term(
                "inconclusive",
                "None of these. It is no win, and no proof of equality.",
            ),
            Term(
                "void",
                "A check failed, so the numbers cannot support a claim. It is no win.",
            ),
            Term(
                "check",
                "A condition without which the numbers say nothing: ok, no, or cannot"
                " be asked.",
                ("checks",),
            ),
            Term("ok", "The condition holds."),
            Term("no", "It does not hold, so the log supports no claim."),
            Term(
                "cannot be asked",
                "The log lacks what the check needs. A report passes all the same.",
            ),
        ),
    ),
    Group(
        "Faults of the instrument",
        (
            Term(
                "lost records",
                "Lines the writer could not write, counted by the writer itself.",
                ("lost",),
            ),
            Term(
                "policy errors",
                "Decisions on which the policy's own code failed.",
            ),
            Term(
                "events",
                "Notices of the instrument about itself, such as a failed scrape.",
            ),
            Term(
                "repeated",
                "Decisions or outcomes that stand in the log twice; counted once.",
            ),
            Term(
                "no reading",
                "Decisions that name a reading of the engine the log does not hold.",
            ),
            Term("no decision", "Outcomes whose decision the log does not hold."),
            Term("schema", "Number of the log's format."),
            Term(
                "reading age",
                "How old the engine's metrics were at a decision, in ms.",
            ),
            Term("decide took", "How long a decision took, in microseconds."),
            Term(
                "notice",
                "Something odd about the log that the reader should know before they"
                " trust a number.",
                ("notices",),
            ),
            Term(
                "simulated",
                "Outcomes come from a simulated engine, not from a real one.",
            ),
            Term(
                "oracle",
                "The policy was told how long answers would be, which no host can know:"
                " a bound on what knowing could buy, never a result.",
            ),
        ),
    ),
    Group(
        "The page itself",
        (
            Term("notes", "What the host stated that no log can know by itself."),
            Term(
                "written by",
                "The program, the processes and the run ids that the lines come from.",
            ),
            Term(
                "decisions",
                "The first decision and the last, in UTC.",
                ("decision",),
            ),
            Term(
                "files",
                "What was read, what was not and why, and where lines could not be"
                " used.",
                ("read", "not read", "lines", "at"),
            ),
        ),
    ),
)

TERMS = tuple(term for group in GROUPS for term in group.terms)
_FORMS = {form.lower(): term for term in TERMS for form in (*term.also, term.word)}
_EXACT = {term.word: term for term in TERMS}


def term(form: str) -> Term | None:
    """The term printed as `form`; None when no page defines it.

    `BASELINE` and `baseline` are two terms; otherwise case does not matter.
    """
    return _EXACT.get(form) or _FORMS.get(form.lower())
