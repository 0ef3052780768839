"""An engine no one could build is refused, with everything that is wrong with it."""

import pytest
from tests.simulator.small import model


@pytest.mark.parametrize("name", ["max_num_seqs", "kv_tokens"])
def test_there_is_at_least_one_slot_and_one_token(name):
    """Zero of either could never serve anyone."""
    with pytest.raises(ValueError, match=f"{name} = 0 is not at least 1"):
        model(**{name: 0})


def test_every_fault_is_told_at_once():
    """Time that is zero, negative or no number."""
    with pytest.raises(ValueError, match=r"prefill_ms = 0.*decode_ms_per_token = nan"):
        model(prefill_ms=0, decode_ms_per_token=float("nan"))
