"""A YAML text as plain values."""

import pytest

from admitperf.core.errors import ConfigError
from admitperf.gateway.config.document import document, read


def made(text, **environment):
    """What a text holds."""
    return document(text, "file", environment)


def wrong(text, **environment):
    """What is wrong with a text."""
    with pytest.raises(ConfigError) as caught:
        made(text, **environment)
    assert caught.value.where == "file"
    return caught.value.faults


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${N}", 8),
        ('"${N}"', "8"),
        ("${N}0", 80),
        ("a${N}b", "a8b"),
        ("${X:-3.5}", 3.5),
        ("${X:-}", None),
        ("${E:-other}", "other"),
        ("'${E}'", ""),
        ("${T}", True),
        ("$${N}", "${N}"),
        ("$N", "$N"),
        ("${N}-${N}", "8-8"),
    ],
)
def test_a_variable_is_read_as_if_it_had_stood_there(written, value):
    """Without quotes it may be a number or a word, in quotes it is a text."""
    assert made(f"a: {written}", N="8", E="", T="true") == {"a": value}


def test_a_variable_cannot_change_the_structure():
    """What an environment holds is a value, whatever it looks like."""
    assert made("a: ${V}", V="x\nb: {c: 1}") == {"a": "x\nb: {c: 1}"}
    assert made("a: ${V}", V="[1, 2]") == {"a": "[1, 2]"}


def test_what_a_variable_holds_is_not_looked_at_again():
    """A value with a dollar in it is that value."""
    assert made("a: ${V}", V="${W}") == {"a": "${W}"}


def test_all_missing_variables_and_repeated_keys_are_said_at_once():
    """Each with the path of where it stands."""
    text = "a: ${ONE}\nb:\n  - {c: '${TWO}'}\n  - {d: 1, d: 2}\na: 3\n"
    assert wrong(text) == [
        "a: the environment variable ONE is not set",
        "b[0].c: the environment variable TWO is not set",
        "b[1].d is given twice, again on line 4",
        "a is given twice, again on line 5",
    ]


def test_a_reference_without_a_name_is_a_fault():
    """It is never passed on as it is."""
    assert wrong("a: ${1}") == ["a: ${ is followed by no NAME}; $${ is itself"]


@pytest.mark.parametrize("text", ["", "8", "[1]", "- a: 1", "# nothing"])
def test_what_is_no_mapping_is_refused(text):
    """A file holds keys."""
    assert wrong(text) == ["holds no mapping of keys to values"]


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: b: c", "a:\t1\n\t b", "? [1]: 2\n: 3\n{", "a: !!python/object:os.x {}",
     "[" * 2000, "a: &x [*x"],
)  # fmt: skip
def test_what_is_no_yaml_is_one_line(text):
    """With the line, and without what stands on it."""
    (fault,) = wrong(text)
    assert fault.startswith("is no YAML: ")
    assert "\n" not in fault


def test_a_fault_does_not_show_the_text():
    """The line of a mistake may hold a key."""
    (fault,) = wrong("secret: hunter2hunter2\n token: [")
    assert "hunter2" not in fault


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    """By its path."""
    for name, content in (("none", None), ("bytes", b"\xff\xfe\xff")):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match="cannot be read: "):
            read(tmp_path / name, {})


def test_a_file_has_a_largest_size(tmp_path):
    """One megabyte, so that a wrong path costs little."""
    (tmp_path / "large").write_bytes(b"#" * (1 << 21))
    with pytest.raises(ConfigError, match="is larger than"):
        read(tmp_path / "large", {})


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    """Some editors write one."""
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read(tmp_path / "bom", {}) == {"a": 1}
