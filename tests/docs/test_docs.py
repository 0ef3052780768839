"""What the pages show is what happens."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))
RUN = ("python", "console")
NOT_RUN = "not run by the tests"
BY_HAND = "by `make test-engines`"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, its text and the line it starts on."""

    language: str
    text: str
    line: int


def blocks(page, language):
    """The blocks of one language on a page."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)))
        for match in FENCE.finditer(text)
    ]
    return [block for block in found if block.language == language]


def program(page):
    """The Python blocks of a page as one program, each line at its own number."""
    text = ""
    for block in blocks(page, "python"):
        text += "\n" * (block.line - text.count("\n")) + block.text
    return text


def commands(page):
    """Each `$ admitperf ...` line of a page with the lines printed under it.

    On a how-to page every command counts, whatever it starts.
    """
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith("admitperf") or page in HOW_TO:
                yield command, output


def named(page):
    """A page's path, as its test's name."""
    return str(page.relative_to(ROOT))


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A folder to work in where the paths a reader types lead into the checkout."""
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def run_program(page, folder):
    """Run a page's Python blocks in a folder."""
    if text := program(page):
        script = folder / f"{page.stem}.py"
        script.write_text(text, encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-W", "error", script],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr


def run_command(command, folder):
    """What a terminal would show of one command."""
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    ran = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder, env=environment, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return ran.stdout


def show(page, command, shown, printed):
    """Put what a command printed in the place of what a page shows."""
    text = page.read_text(encoding="utf-8")
    new = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{printed}", 1)
    page.write_text(new, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_runs_top_to_bottom_and_prints_what_it_shows(page, checkout, request):
    """The Python of a page is one program, and each command prints what is below it.

    `--update` rewrites what is shown.
    """
    run_program(page, checkout)
    for command, shown in commands(page):
        printed = run_command(command, checkout)
        if request.config.getoption("--update"):
            show(page, command, shown, printed)
        else:
            assert printed == shown, f"$ {command}"


def paragraph_before(page, block):
    """The lines between a block and the empty line above its introduction."""
    above = page.read_text(encoding="utf-8").splitlines()[: block.line - 1]
    return "\n".join(above).rstrip().rpartition("\n\n")[2].lower()


def every_block(page):
    """All blocks of a page, whatever their language."""
    text = page.read_text(encoding="utf-8")
    languages = {language for language, _ in FENCE.findall(text)}
    return [block for language in languages for block in blocks(page, language)]


@pytest.mark.parametrize("page", HOW_TO, ids=named)
def test_a_how_to_says_which_of_its_blocks_are_not_run(page):
    """A block is run, or is a piece of a file it names, or its introduction says so."""
    for block in every_block(page):
        if block.language in RUN:
            continue
        said = paragraph_before(page, block)
        files = [ROOT / path for path in re.findall(r"`([\w/.-]+\.\w+)`", said)]
        quoted = any(block.text in path.read_text("utf-8") for path in files)
        assert quoted or NOT_RUN in said or BY_HAND in said, block.line


def test_a_job_on_a_page_uses_the_commands_that_the_page_runs():
    """What a reader copies into a pipeline has been tried."""
    jobs = [(page, block) for page in HOW_TO for block in blocks(page, "yaml")]
    assert jobs
    for page, block in jobs:
        ran = [command.partition(" > ")[0] for command, _ in commands(page)]
        steps = re.findall(r"- run: (admitperf .*)", block.text)
        assert steps
        for step in steps:
            assert step.partition(" > ")[0] in ran, step


def test_the_readme_shows_the_library_and_a_command():
    """The first page is among those that are run."""
    assert "decide" in program(PAGES[0])
    assert list(commands(PAGES[0]))


def test_every_page_stands_in_the_navigation_once():
    """The site tool leaves out a page it was not told of, and says nothing."""
    listed = re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8"))
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]]
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=named)
def test_every_file_a_page_names_exists(page):
    """A link, or a path of a test, leads somewhere in the checkout."""
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", text)
    paths = re.findall(r"`((?:tests|docs|examples|infra|benchmarks)/[\w./-]+)`", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [path for path in paths if not (ROOT / path).exists()]
    assert missing == []


def every_command(group, *above):
    """Each command of the tool, by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, *above, name)


def test_every_command_has_help_and_a_place_in_the_reference():
    """Nobody has to read our source to learn what a command does."""
    from admitperf.cli import main

    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    found = list(every_command(main))
    assert found
    for words, command in found:
        assert command.help, words
        assert f"admitperf {' '.join(words)}" in reference, words
        for option in command.params:
            assert isinstance(option, click.Argument) or option.help, (words, option)
