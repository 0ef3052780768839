"""Profiles: strict files, and what is shipped."""

import json

import pytest

from admitperf.core.errors import ConfigError
from admitperf.simulator.profile import parsed, profile, shipped


def faults_of(document):
    """What a document is refused for."""
    with pytest.raises(ConfigError) as caught:
        parsed(json.dumps(document), "mine")
    return caught.value.faults


def document(**changes):
    """A shipped profile as data, with changes."""
    return {**profile("vllm-cpu").document(), **changes}


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_profile_reads_back_as_it_was_written(name):
    """The file's text is what the profile writes."""
    made = profile(name)
    assert made.name == name
    assert parsed(made.text(), name) == made


def test_the_measured_and_the_calculated_are_told_apart():
    """Two were measured; the rest is arithmetic and says so."""
    measured = {name for name in shipped() if profile(name).measured}
    assert measured == {"vllm-cpu", "llamacpp-cpu"}
    assert len(shipped()) == 6
    for name in set(shipped()) - measured:
        assert "never held against" in profile(name).provenance.notes[0]
        assert profile(name).residuals is None


def test_a_profile_can_be_a_file(tmp_path):
    """A path is read as one."""
    path = tmp_path / "mine.json"
    path.write_text(profile("vllm-cpu").text(), encoding="utf-8")
    assert profile(path) == profile("vllm-cpu")


def test_a_name_that_is_none_is_told_what_there_is():
    """The error lists what is shipped."""
    with pytest.raises(ConfigError, match=r"a10-qwen.*vllm-cpu"):
        profile("vlm-cpu")
    with pytest.raises(ConfigError, match="No such file"):
        profile("no/such.json")


def test_every_fault_is_said_at_once():
    """An unknown key, a missing one, a wrong kind and a wrong source together."""
    made = document(extra=1, residuals={"observations": "many"})
    made["engine"] = {**made["engine"], "max_num_seqs": "8", "slots": 1}
    made["provenance"] = {**made["provenance"], "source": "a dream", "runs": "r1"}
    del made["name"]
    said = "\n".join(faults_of(made))
    for part in ("'extra'", "'name'", "max_num_seqs", "'slots'", "dream", "runs"):
        assert part in said
    assert "residuals.observations" in said


def test_numbers_no_engine_can_have_are_faults():
    """The model's own rules hold for files."""
    engine = {**document()["engine"], "step_ms": -1.0, "kv_blocks": 0}
    (said,) = faults_of(document(engine=engine))
    assert "step_ms" in said
    assert "kv_blocks" in said


@pytest.mark.parametrize("text", ["", "[]", "3", '{"engine": NaN}', "{"])
def test_what_is_no_profile_is_a_clear_error(text):
    """Never a traceback of another kind."""
    with pytest.raises(ConfigError, match="profile mine: "):
        parsed(text, "mine")


def test_another_schema_is_refused():
    """A file of a later format is not misread."""
    assert faults_of(document(schema=2)) == ["schema 2 is not 1"]


@pytest.mark.parametrize("name", [n for n in shipped() if not profile(n).measured])
def test_the_arithmetic_of_a_calculated_profile_follows_from_its_constants(name):
    """Worked out here anew, from the constants that its file states."""
    made = profile(name)
    c = {n: constant.value for n, constant in made.provenance.constants.items()}
    token_bytes = 2 * c["layers"] * c["kv_heads"] * c["head_size"] * c["kv_value_bytes"]
    weight_bytes = c["weights"] * c["weight_bytes"]
    cache_bytes = (
        c["memory_bytes"] * c["memory_fraction"] - weight_bytes - c["activation_bytes"]
    )
    bandwidth = c["bandwidth_bytes_per_s"] * c["bandwidth_fraction"]
    flops = c["flops"] * c["flops_fraction"]
    engine = made.engine
    assert engine.kv_tokens == pytest.approx(cache_bytes / token_bytes, abs=16)
    assert engine.step_ms == pytest.approx(
        1e3 * weight_bytes / bandwidth + c["host_ms"], rel=1e-3
    )
    assert engine.ms_per_resident_token == pytest.approx(
        1e3 * token_bytes / bandwidth, rel=1e-3
    )
    assert engine.ms_per_prefill_token == pytest.approx(
        1e3 * 2 * c["weights"] / flops, rel=1e-3
    )
    assert all(constant.source for constant in made.provenance.constants.values())


def test_an_a100_with_a_7b_model_holds_what_vllm_reports():
    """About 384,000 tokens at 0.9 of the memory, within 5 %."""
    tokens = profile("a100-40-qwen2.5-7b").engine.kv_tokens
    assert tokens == pytest.approx(384_000, rel=0.05)


def test_the_calculated_files_are_those_of_the_code():
    """No file was edited by hand."""
    from admitperf.simulator.fit.arithmetic import all_calculated

    for made in all_calculated():
        assert profile(made.name) == made
