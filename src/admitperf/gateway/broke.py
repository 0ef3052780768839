"""An answer that broke off on its way."""


class UpstreamBroke(Exception):  # noqa: N818  no fault of ours, but news
    """Raised out of an app when the rest of an answer it began will not come.

    Attributes:
        why: the word for the outcome: "upstream_ended_early", "timeout_gap",
            "timeout_total", "timeout_first_token" or "upstream_unreachable".
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
