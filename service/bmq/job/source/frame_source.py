"""A data source of frames, as Spark registers it. Spark loads it into its planning processes: it imports no kernel."""

from collections.abc import Callable

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from bmq.job.frame_rows import FRAME_DDL


def frame_source(source_name: str, make_reader: Callable[[], DataSourceStreamReader]) -> type[DataSource]:
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
