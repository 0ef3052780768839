"""A token comes from the environment or a file, and from nowhere into a message."""

import pytest

from admitperf.core.errors import ConfigError
from admitperf.scrape.token import DEFAULT_ENV, blanked, read_token

TOKEN = "s3cret-token"


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """No token in the environment, whatever the machine has."""
    monkeypatch.delenv(DEFAULT_ENV, raising=False)


def test_without_anything_there_is_none():
    """Most engines want none."""
    assert read_token() is None


def test_the_default_variable_is_read_when_it_is_there(monkeypatch):
    """Nothing has to be typed; an empty one counts as absent."""
    monkeypatch.setenv(DEFAULT_ENV, f" {TOKEN}\n")
    assert read_token() == TOKEN
    monkeypatch.setenv(DEFAULT_ENV, " ")
    assert read_token() is None


def test_a_named_variable_and_a_file_are_read(monkeypatch, tmp_path):
    """What was named goes before the default; the line end of a file is dropped."""
    monkeypatch.setenv(DEFAULT_ENV, "other")
    monkeypatch.setenv("ENGINE_KEY", TOKEN)
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    assert read_token(env="ENGINE_KEY") == TOKEN
    assert read_token(file=str(file)) == TOKEN


@pytest.mark.parametrize("env", [TOKEN, "hf_secretToken", ""])
def test_a_variable_that_is_not_set_is_not_repeated(env):
    """Whoever types the token where its name belongs does not find it in a log."""
    with pytest.raises(ConfigError, match="--token-env") as caught:
        read_token(env=env)
    assert not env or env not in str(caught.value)


@pytest.mark.parametrize("file", [TOKEN, "", "\0", "/"])
def test_a_file_that_cannot_be_read_is_not_repeated(file, tmp_path, monkeypatch):
    """A path may be the token itself."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="--token-file") as caught:
        read_token(file=file)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"two words", b"two\nlines", b"a\x00b", b"\xff\xfe", b"", b"x" * 20_000],
)
def test_what_is_no_token_is_refused_and_not_repeated(tmp_path, content):
    """It would break the header, or be sent to the wrong place."""
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="--token-file") as caught:
        read_token(file=str(file))
    assert content.decode("latin-1").strip()[:5] not in str(caught.value) or not content


def test_both_at_once_are_refused():
    """Which one was meant cannot be told."""
    with pytest.raises(ConfigError, match="not both"):
        read_token(env="A", file="b")


def test_a_long_token_is_blanked_with_what_is_glued_to_it():
    """The first characters tell it, and its end goes with them."""
    token = "Ab3" * 1000
    assert blanked(f'x "{token}" y', token) == 'x "***" y'
    assert blanked(f"x {token.lower()} y", token) == "x *** y"


def test_a_token_of_odd_characters_is_blanked():
    """What means something in a pattern is only itself, escaped or not."""
    token = r'^a]\b"c-$('
    escaped = token.replace("\\", r"\\").replace('"', r"\"")
    assert blanked(f"x {token} y {escaped}", token) == "x *** y ***"
    assert blanked("nothing here", token) == "nothing here"
