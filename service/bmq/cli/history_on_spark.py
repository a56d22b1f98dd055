"""A history played on Spark, for `bmq backtest --spark`. Imports Spark and the engine only inside of the function."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from bmq.cli.history import History, HistoryOptions
from bmq.cli.log_lines import debugging
from bmq.cli.target import Target
from bmq.errors import ServiceError

if TYPE_CHECKING:
    from bmq.backtest.replay import Outcome


def play_on_spark(
    history: History, target: Target, options: HistoryOptions, out: Path | None
) -> tuple["Outcome", float]:
    """Apply the readings of files to the queries on Spark; return what was counted, and the seconds.

    Parameters
    ----------
    target : its configuration says how many shards there are.
    out : a new folder for the events; None: they are only counted.

    Raises
    ------
    ServiceError
        The folder has files, a file of readings is damaged, or Spark fails.
    """
    from bmq.backtest.shard_frames import FrameMaker, ShardReplay, units_of
    from bmq.job.session import make_session
    from bmq.job.shards import shard_keys
    from bmq.job.spark_replay import SETTINGS, replay_on_spark

    assert target.config is not None  # find_history refuses it
    n_shards = target.config.job.shards
    (feed,) = history.installation.feeds.values()
    maker = FrameMaker(feed, options.bad_readings, tuple(options.text), shard_keys(n_shards))
    folder = None if out is None else str(out.resolve())
    shard = ShardReplay(history.installation, history.definitions, history.moments.clock_end, folder)
    units = units_of(history.files)
    if out is not None:
        _make_folder(out)
    begin = time.monotonic()
    session = make_session(n_shards, SETTINGS)
    if not debugging():
        session.sparkContext.setLogLevel("OFF")  # Spark prints the traceback of each try; the error says what failed
    try:
        try:
            outcome = replay_on_spark(session, units, maker, shard)
        finally:
            session.stop()
    except BaseException:
        # Tasks that Spark cancels write until the session has ended.
        for file in out.glob("part-*.parquet*") if out is not None else ():
            file.unlink(missing_ok=True)
        raise
    return outcome, time.monotonic() - begin


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(exist_ok=True)
        is_empty = not any(out.iterdir())
    except OSError as error:
        raise ServiceError(f"--out is {str(out)!r}, which is no folder for files: {error}. Name another.") from None
    if not is_empty:
        raise ServiceError(f"--out is {str(out)!r}, a folder that has files. Name a new one.")
