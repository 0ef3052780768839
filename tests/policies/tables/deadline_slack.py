"""What `deadline_slack` says."""

from tests.policies.verdicts import case

LEDGER = {"in_flight": 4}

TABLE = [
    case("deadline_slack", LEDGER, "admit"),
    case("deadline_slack", LEDGER, "admit", {"deadline_s": 0.001}),
    case("deadline_slack", LEDGER, "reject deadline_unmeetable", {"deadline_s": 0.0}),
    case("deadline_slack", LEDGER, "reject deadline_unmeetable", {"deadline_s": -9.0}),
    case(
        "deadline_slack",
        LEDGER,
        "reject deadline_unmeetable",
        {"deadline_s": -9.0, "input_tokens": 1},
        deadline_is="end",
    ),
    # While nothing is measured nobody knows that it would be late.
    case(
        "deadline_slack",
        LEDGER,
        "admit",
        {"deadline_s": 0.001, "input_tokens": 10**6, "max_output_tokens": 10**6},
    ),
]
OTHERWISE = [
    {"deadline_is": "end", "quantile": 1.0, "probe_s": 0.1},
    {"deadline_is": "end", "quantile": 0.5, "probe_s": 3600.0},
    {"deadline_is": "first_token", "probe_s": 3600.0},
]
