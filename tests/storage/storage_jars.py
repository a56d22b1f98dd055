"""The jars of HDFS' mini cluster, and those that Spark needs for s3a; `jars.sha256` has the checksum of each.

The service ships none of them: its users name theirs in spark-defaults.conf (docs/storage.md).
"""

from pathlib import Path

from bmq.broker.ivy import pyspark_jars
from bmq.broker.jars import resolve

CHECKSUMS = Path(__file__).with_name("jars.sha256")

HADOOP_VERSION = "3.5.0"  # of the hadoop-client jars that PySpark ships
SDK_VERSION = "2.35.4"  # the one that hadoop-aws of this version names

S3A = [
    f"org.apache.hadoop:hadoop-aws:{HADOOP_VERSION}",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",  # without it, hadoop-aws does not start
]
# The newest that there was, for Spark 4.1. The two Spark classes that it extends and calls are the same in 4.2.
ABORTABLE = "org.apache.spark:spark-hadoop-cloud_2.13:4.1.2"
# In place of `software.amazon.awssdk:bundle`, which has 686 MB.
SDK = [
    f"software.amazon.awssdk:{module}:{SDK_VERSION}"
    for module in ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
]
# PySpark ships them, some in a newer version.
SHIPPED = ["slf4j-api", "commons-codec", "commons-logging", "netty-buffer", "netty-codec", "netty-codec-http"]
SHIPPED += ["netty-codec-http2", "netty-common", "netty-handler", "netty-resolver", "netty-transport"]
SHIPPED += ["netty-transport-classes-epoll", "netty-transport-native-unix-common"]

MINI_CLUSTER = f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP_VERSION}"
JUNIT = "org.junit.jupiter:junit-jupiter-api:5.13.4"  # MiniDFSCluster asserts with it that its folder is there


def s3a_jars() -> list[Path]:
    """Return the jars that Spark needs for s3a."""
    return [
        *resolve([*S3A, ABORTABLE], transitive=False, pinned=CHECKSUMS),
        *resolve(SDK, exclude=SHIPPED, pinned=CHECKSUMS),
    ]


def mini_cluster_class_path() -> str:
    """Return the class path of HDFS' mini cluster: its jar, JUnit, and the jars of PySpark."""
    jars = [*resolve([MINI_CLUSTER], transitive=False, pinned=CHECKSUMS), *resolve([JUNIT], pinned=CHECKSUMS)]
    return ":".join([*map(str, jars), f"{pyspark_jars()}/*"])
