"""`bmq package`: what the nodes of a cluster need beside Java, Python and the package itself."""

from pathlib import Path
from typing import Annotated

import typer

from bmq.cli.terminal import show_line

ARCHIVE = Path("bmq-kernels.tar.gz")


def package(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The archive; it is replaced.")] = ARCHIVE,
) -> None:
    """Write the compiled kernels to an archive for `spark-submit --archives`, so that no executor compiles them.

    The archive fits machines with the CPU of this one and the same version of the package. On others the kernels are
    compiled at their first start.
    """
    # Not at the top: the import of the kernels takes seconds.
    from bmq.job.kernel_archive import write_archive

    show_line("Loading the kernels. If they are not compiled yet, that takes some minutes.")
    n_bytes = write_archive(path)
    show_line(f"{path}: {n_bytes / 1e6:.0f} MB. spark-submit --archives {path}#bmq-cache \\")
    show_line("    --conf spark.executorEnv.BMQ_CACHE_DIR=bmq-cache …")
