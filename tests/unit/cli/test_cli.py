"""The command line without a service: usage, exit codes, and what a failure looks like."""

import importlib.metadata
import io
import json
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner, Result

from bmq.broker.ports import free_ports
from bmq.cli import app
from bmq.cli.cli_reference import reference
from bmq.cli.log_lines import JsonFormatter
from bmq.config import load_config

ROOT = Path(__file__).parents[3]
CONFIG = """
[feeds.stocks]
topic = "stocks"
stream_id = "symbol"
dimensions = ["price"]
"""
FORTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}
COMMANDS = [
    "init",
    "serve",
    "broker",
    "query put",
    "query import",
    "query apply",
    "query export",
    "query rm",
    "query list",
    "query show",
    "events",
    "backtest",
    "forecast",
    "demo",
    "view",
    "check-ledger",
    "checkpoint show",
    "checkpoint export",
    "checkpoint rescale",
    "checkpoint upgrade",
    "capacity",
    "conformance",
    "package",
    "doctor",
]


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, so that no configuration of the checkout is found."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("BMQ_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> str:
    """An address at which no Kafka answers; and patience for half a second."""
    for module in ("kafka_io.connect", "client.client", "kafka_io.topics", "kafka_io.topic_reader"):
        monkeypatch.setattr(f"bmq.{module}.CONNECT_TIMEOUT_SECONDS", 0.5)
    return f"127.0.0.1:{free_ports(1)[0]}"


def bmq(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def is_one_sentence(result: Result) -> bool:
    return result.stderr.startswith("bmq: ") and "Traceback" not in result.output and not result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = bmq(*command.split(), "--help")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: bmq {command}") or f" {command} " in result.stdout


def test_the_version_is_that_of_the_package() -> None:
    assert bmq("--version").stdout == f"bmq {importlib.metadata.version('bmq')}\n"


def test_a_shell_can_complete_the_commands() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bmq.cli", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert "complete" in run.stdout
    assert "_BMQ_COMPLETE" in run.stdout


def test_a_failure_is_json_where_the_log_is(nowhere: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    try:
        result = bmq("query", "list", "--bootstrap", nowhere)
    finally:
        logging.getLogger().removeHandler(handler)

    assert (result.exit_code, result.output) == (1, "")
    said = json.loads(stream.getvalue().splitlines()[-1])
    assert said["level"] == "ERROR"
    assert said["message"].startswith("No Kafka answers")


def test_init_asks_three_questions_and_writes_what_serve_reads(workplace: Path) -> None:
    result = bmq("init", stdin="fleet.positions\nvehicle\nx, y\n")

    assert result.exit_code == 0, result.output
    (feed,) = load_config(workplace / "bmq.toml").feeds.items()
    assert feed[0] == "fleet-positions"
    assert (feed[1].topic, feed[1].stream_id, feed[1].dimensions) == ("fleet.positions", "vehicle", ("x", "y"))


def test_init_leaves_no_file_of_wrong_answers_and_touches_none_that_is_there(workplace: Path) -> None:
    wrong = bmq("init", stdin="t\nx\nx\n")
    assert wrong.exit_code == 2
    assert "x stands more than once" in wrong.stderr
    assert list(workplace.iterdir()) == []

    (workplace / "bmq.toml").write_text("mine")
    assert "--stream-id is for --topic" in bmq("init", "other.toml", "--stream-id", "id").stderr
    there = bmq("init")
    assert there.exit_code == 2
    assert is_one_sentence(there)
    assert (workplace / "bmq.toml").read_text() == "mine"


def test_every_command_is_in_the_documents_and_they_are_not_stale() -> None:
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")

    assert text == reference(), (
        "docs/cli.md is stale; write it anew with: python -m bmq.cli.cli_reference > docs/cli.md"
    )
    assert all(f"## bmq {command}\n" in text for command in COMMANDS)


def test_there_are_no_commands_but_those() -> None:
    def names(group: TyperGroup, prefix: str = "") -> list[str]:
        found: list[str] = []
        for name, command in group.commands.items():
            found += names(command, f"{name} ") if isinstance(command, TyperGroup) else [f"{prefix}{name}"]
        return found

    command = get_command(app)
    assert isinstance(command, TyperGroup)
    assert sorted(names(command)) == sorted(COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check-ledger", "now"],
        ["query", "put", "q"],
        ["query", "put", "q", "absent.json"],
        ["query", "import", "-"],
        ["events", "--limit", "0"],
        ["demo", "ships"],
        ["demo", "--no-page", "--port", "8108"],
        ["demo", "--no-page", "--open"],
        ["serve", "--nonsense"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert bmq(*arguments).exit_code == 2


def test_a_taken_port_of_the_demo_is_refused_before_anything_is_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = bmq("demo", "--port", str(taken.getsockname()[1]))

    assert result.exit_code == 1
    assert is_one_sentence(result)
    assert "Starting Kafka" not in result.stdout


def test_the_module_runs_as_the_command_does() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bmq.cli", "nonsense"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT / "service")},
    )

    assert run.returncode == 2
    assert "No such command 'nonsense'" in run.stderr


@pytest.mark.parametrize("command", [["serve"], ["doctor"], ["query", "list"], ["events"]])
def test_a_configuration_that_cannot_be_read_exits_with_2(command: list[str]) -> None:
    result = bmq(*command, "--config", "absent.toml")

    assert result.exit_code == 2
    assert is_one_sentence(result)
    assert "absent.toml" in result.stderr


def test_a_fault_in_the_configuration_is_named(workplace: Path) -> None:
    (workplace / "bad.toml").write_text(CONFIG + "[job]\nshard = 3\n")

    result = bmq("serve", "--config", "bad.toml")

    assert result.exit_code == 2
    assert "shard" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["query", "put", "q", "-", "--timeout", "1"],
        ["query", "rm", "q"],
        ["query", "list"],
        ["query", "show", "q"],
        ["events"],
    ],
)
def test_a_kafka_that_does_not_answer_is_one_sentence_and_exit_1(command: list[str], nowhere: str) -> None:
    result = bmq(*command, "--bootstrap", nowhere, stdin=json.dumps(FORTIES))

    assert result.exit_code == 1
    assert is_one_sentence(result)
    assert f"No Kafka answers at {nowhere}" in result.stderr
    assert "bmq broker" in result.stderr


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ("{", "not_json"),
        ("[]", "not_json"),
        ('{"kind": "border", "feed": "stoks", "region": {"box": {"price": [1, 2]}}}', "'stocks'"),
        ('{"kind": "border", "feed": "stocks", "regoin": {}}', "'region'"),
        ('{"kind": "border", "feed": "stocks", "region": {"box": {"prize": [1, 2]}}}', "'price'"),
        ('{"kind": "border", "feed": "stocks", "region": {"box": {"price": [2, 1]}}}', "bad_region"),
        (
            '{"kind": "border", "feed": "stocks", "region": {"box": {"price": [1, 2]}}, "ttl": "2"}',
            "bad_duration",
        ),
        (
            '{"kind": "border", "feed": "stocks", "region": {"box": {"price": [1, 2]}}, "bounds": "<>"}',
            "bad_option",
        ),
    ],
)
def test_a_definition_that_would_be_rejected_is_not_published(
    definition: str, says: str, workplace: Path, nowhere: str
) -> None:
    (workplace / "c.toml").write_text(CONFIG)

    result = bmq("query", "put", "q", "-", "--config", "c.toml", "--bootstrap", nowhere, stdin=definition)

    assert result.exit_code == 1
    assert is_one_sentence(result)
    assert says in result.stderr
    assert result.stderr.rstrip().endswith("Nothing was published.")


@pytest.mark.parametrize("definition", ["{", "[]", '{"kind": "border"}', '{"kind": "match"}'])
def test_without_a_configuration_the_shape_is_still_checked(definition: str, nowhere: str) -> None:
    result = bmq("query", "put", "q", "-", "--bootstrap", nowhere, stdin=definition)

    assert result.exit_code == 1
    assert "Nothing was published." in result.stderr


def test_the_usual_configuration_is_found(workplace: Path, nowhere: str) -> None:
    (workplace / "config").mkdir()
    (workplace / "config/local.toml").write_text(CONFIG + f'[kafka]\nbootstrap_servers = "{nowhere}"\n')

    assert f"No Kafka answers at {nowhere}" in bmq("query", "list").stderr


def test_the_environment_names_the_kafka(monkeypatch: pytest.MonkeyPatch, nowhere: str) -> None:
    monkeypatch.setenv("BMQ_KAFKA__BOOTSTRAP_SERVERS", nowhere)

    assert f"No Kafka answers at {nowhere}" in bmq("query", "list").stderr


def test_debug_shows_where_a_failure_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMQ_DEBUG", "1")

    result = bmq("serve", "--config", "absent.toml")

    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "bmq: absent.toml" in result.stderr


def test_even_a_fault_of_ours_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("bmq.cli.query.find_target", fail)

    result = bmq("query", "list")

    assert result.exit_code == 1
    assert is_one_sentence(result)
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "BMQ_DEBUG=1" in result.stderr


def test_ctrl_c_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bmq.cli.query.find_target", interrupt)

    result = bmq("query", "list")

    assert (result.exit_code, result.stderr) == (1, "bmq: Interrupted.\n")


def test_a_limit_is_refused_for_a_group_which_would_get_the_last_event_again() -> None:
    result = bmq("events", "--group", "alerts", "--limit", "3")

    assert result.exit_code == 2
    assert "--limit is not for a --group" in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "s3a://bucket/checkpoint"),
        ("export", "hdfs://name-node:8020/checkpoint", "files"),
        ("rescale", "--shards", "2", "s3a://bucket/checkpoint", "new"),
        ("rescale", "--shards", "2", "old", "s3a://bucket/checkpoint"),
        ("upgrade", "old", "hdfs:///checkpoint"),
    ],
)
def test_the_commands_of_checkpoints_refuse_another_file_system(workplace: Path, arguments: tuple[str, ...]) -> None:
    result = bmq("checkpoint", *arguments)

    assert result.exit_code == 2
    assert "another file system" in result.output
    assert list(workplace.iterdir()) == []


def test_a_checkpoint_that_is_named_as_a_file_uri_is_refused() -> None:
    result = bmq("checkpoint", "show", "file:///var/checkpoint")

    assert result.exit_code == 2
    assert "without" in result.output
