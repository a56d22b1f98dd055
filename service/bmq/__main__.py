"""The command `bmq`, also as `python -m bmq`. Says which packages it needs where only the library is installed."""

import sys

# What `pip install "bmq[service]"` brings and the commands import.
SERVICE_PACKAGES = (
    *("confluent_kafka", "msgspec", "pandas", "prometheus_client", "pydantic_settings", "pyspark", "rich"),
    *("typer", "yaml"),
)


def main() -> None:
    """Run the command line; exit code 1 if a package of the service is missing."""
    try:
        from bmq.cli import main as run
    except ModuleNotFoundError as error:
        if error.name not in SERVICE_PACKAGES:
            raise
        sys.exit(
            f"bmq: The package {error.name} is missing, because only the library of bmq is installed. The commands and "
            'the service need more: pip install "bmq[service]"'
        )
    run()


if __name__ == "__main__":
    main()
