"""A policy that answers what the name of the model says, installed like anyone's."""

from admitperf import Policy


class Says(Policy):
    """Admits, except models called `verdict:reason[:hint=MS][:estimate=MS][:until=N]`.

    `until=N` lets the N-th retry of a call in.
    """

    name = "says"

    def decide(self, metrics):
        """Do as the name says."""
        request = metrics.request
        verdict, *words = (request.model or "").split(":")
        if verdict not in ("defer", "reject"):
            return self.admit()
        given = dict(word.split("=") for word in words[1:])
        if "until" in given and request.attempt >= int(given["until"]):
            return self.admit()
        waits = (given.get(name) for name in ("hint", "estimate"))
        return getattr(self, verdict)(words[0], *(w and float(w) for w in waits))


def install(folder):
    """Make a folder that, on the path, offers the policy to whoever asks for it."""
    made = folder / "says-1.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: says\nVersion: 1.0\n")
    offer = f"[admitperf.policies]\nsays = {__name__}:Says\n"
    (made / "entry_points.txt").write_text(offer)
    return folder
