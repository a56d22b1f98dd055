"""`bmq init`: a first configuration, from three questions or from the records of a topic."""

import tomllib
from pathlib import Path
from typing import Annotated

import typer

from bmq.cli.target import USUAL_SERVERS
from bmq.cli.terminal import show_line
from bmq.config.feed_guess import Option, Sample, guess_feed
from bmq.config.first_file import first_file
from bmq.config.settings import config_of
from bmq.errors import ConfigError
from bmq.kafka_io.topic_reader import Start, TopicReader

N_SAMPLES = 100


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("bmq.toml"),
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            help="Look at the last records of this topic, in a Kafka without TLS.",
            show_default=False,
        ),
    ] = None,
    stream_id: Annotated[
        str | None,
        typer.Option(
            "--stream-id", metavar="FIELD", help="With --topic: the field that names the stream.", show_default=False
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            metavar="HOST:PORT",
            envvar="BMQ_KAFKA__BOOTSTRAP_SERVERS",
            help="Where Kafka is.  [default: localhost:9092 with --topic, else the service runs its own]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a first configuration with comments, from three questions or from the last records of a topic."""
    if file.exists():
        raise ConfigError(f"{str(file)!r} exists already and is not touched. Name another file: bmq init FILE")
    if topic is None and stream_id is not None:
        raise ConfigError("--stream-id is for --topic; without it, `bmq init` asks for the field.")
    if topic is None:
        options, servers = _ask(), bootstrap
    else:
        servers = bootstrap or USUAL_SERVERS
        options = guess_feed(topic, _samples(servers, topic), stream_id)
    text = first_file(options, servers)
    config_of(tomllib.loads(text), f"what would be in {file}")
    try:
        file.write_bytes(text.encode())
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be written: {error.strerror}. Name another file.") from None
    if topic is not None:
        for option in options:
            show_line(f"{option.name} = {option.value}: {option.reason}")
    show_line(f"{file} is written. Check it, then: bmq serve --config {file}")


def _ask() -> list[Option]:
    topic = typer.prompt("Topic of the readings")
    stream_id = typer.prompt("Field that names the stream, such as the symbol or the vehicle (@key: the record's key)")
    fields = typer.prompt("Numeric fields that regions are about, with commas")
    dimensions = [field for part in fields.split(",") if (field := part.strip())]
    return [
        Option("topic", topic.strip(), "the topic to read"),
        Option("stream_id", stream_id.strip(), "the field that names the stream"),
        Option("dimensions", dimensions, "the numeric fields that regions are about"),
    ]


def _samples(servers: str, topic: str) -> list[Sample]:
    with TopicReader({"bootstrap.servers": servers}, topic, Start.END, n_before=N_SAMPLES) as reader:
        samples = [Sample(found.key(), found.value(), found.timestamp()[1]) for found in reader.to_end()]
    return sorted(samples, key=lambda sample: sample.time_ms)[-N_SAMPLES:]
