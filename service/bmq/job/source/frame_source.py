"""A data source of frames, as Spark registers it. Spark loads it into its planning processes: it imports no kernel."""

import os
import sys
from collections.abc import Callable

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from bmq.job.frame_rows import FRAME_DDL


class FrameReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader that ends without a word when Spark has closed its connection.

    Spark's process of the reader would write its last word to a connection that has ended, and print a traceback of
    that to the service's log: at each stop, if it comes that far before it is killed.
    """

    def stop(self) -> None:
        """End the process if the connection has ended; Spark calls it last, with the error at hand."""
        if isinstance(sys.exception(), EOFError):
            os._exit(0)


def frame_source(source_name: str, make_reader: Callable[[], FrameReader]) -> type[DataSource]:
    """Return a data source of rows of frames; the class carries what makes its reader to the workers."""

    class FrameSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return source_name

        def schema(self) -> str:
            return FRAME_DDL

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return make_reader()

    return FrameSource
