"""Three amounts of many tasks, added up as tasks come and go."""


class Sums:
    """Sums of what tasks need.

    Attributes:
        all: of tokens, slots and prompt tokens a second.
        count: of tasks; with none the sums are 0, whatever adding has rounded off.
    """

    __slots__ = ("all", "count")

    def __init__(self) -> None:
        self.all = (0.0, 0.0, 0.0)
        self.count = 0

    def add(
        self, amounts: tuple[float, float, float], sign: int, part: float = 1.0
    ) -> None:
        """A task comes, or goes.

        Args:
            amounts: of the task.
            sign: 1 or -1.
            part: what counts of it, from 0 to 1.
        """
        self.count += sign
        by = sign * part
        one, two, three = self.all
        self.all = (
            (one + by * amounts[0], two + by * amounts[1], three + by * amounts[2])
            if self.count
            else (0.0, 0.0, 0.0)
        )

    def scale(self, part: float) -> None:
        """All of them count for less."""
        one, two, three = self.all
        self.all = part * one, part * two, part * three
