"""`bmq doctor`: what the service needs, and whether it is there."""

import typer

from bmq import doctor as examination
from bmq.cli.target import BootstrapOption, ConfigOption, find_target
from bmq.doctor import Level
from bmq.errors import ConfigError

_COLORS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def doctor(config: ConfigOption = None, bootstrap: BootstrapOption = None) -> None:
    """Check Java, jars, Kafka, topics and checkpoint, and say what to do. Exit code 1 if anything fails."""
    target = find_target(config, bootstrap)
    if target.config is None:
        raise ConfigError("There is no configuration to check. Name one: bmq doctor --config config/mine.toml")
    servers = bootstrap or target.config.kafka.bootstrap_servers
    failed = False
    for finding in examination.examine(target.config, servers):
        failed |= finding.level is Level.FAIL
        level = typer.style(f"{finding.level:<4}", fg=_COLORS[finding.level])
        typer.echo(f"{level}  {finding.what}: {finding.text}")
    if failed:
        raise typer.Exit(1)
