"""`bmq package`: what the nodes of a cluster need beside Java, Python and the package itself."""

from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from bmq.cli.terminal import show_line

ARCHIVE = Path("bmq-kernels.tar.gz")


def package(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The archive; it is replaced.")] = ARCHIVE,
    packages: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the Python packages, too, for executors."),
    ] = None,
) -> None:
    """Write the compiled kernels to an archive for `spark-submit --archives`, so that no executor compiles them.

    The archive fits machines with the CPU of this one and the same version of the package. On others the kernels are
    compiled at their first start. An archive of the packages fits machines with the same Python, without this package.
    """
    # Not at the top: the import of the kernels takes seconds.
    from bmq.job.kernel_archive import write_archive
    from bmq.job.packages_archive import write_packages

    show_line("Loading the kernels. If they are not compiled yet, that takes some minutes.")
    n_bytes = write_archive(path)
    show_line(f"{path}: {decimal(n_bytes)}")
    archives, settings = [f"{path}#bmq-cache"], ["spark.executorEnv.BMQ_CACHE_DIR=bmq-cache"]
    if packages is not None:
        show_line(f"{packages}: {decimal(write_packages(packages))}")
        archives.append(f"{packages}#bmq-packages")
        settings.append("spark.executorEnv.PYTHONPATH=bmq-packages")
    show_line(f"spark-submit --archives {','.join(archives)} {' '.join(f'--conf {one}' for one in settings)} …")
