"""Images under the names that the Dockerfile and the compose file use, made from packages.

    debootstrap ──► rootfs.tar ──► bmq-rehearsal-debian ──┬──► python:3.11-slim-bookworm
                                                          ├──► apache/kafka, with the jars of `bmq.broker.jars`
                                                          └──► prom/prometheus

For a machine that reaches registries of packages, but no registry of images. The environment says where packages come
from: BMQ_DEBIAN_MIRROR, PIP_INDEX_URL, BMQ_MAVEN_REPOSITORY, and the proxies http_proxy and https_proxy, which podman
passes on by itself. Nothing of it is written down outside of the engine's folder.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from bmq.broker.jars import broker_jars
from tests.compose.engine import BUILD_LIMIT_SECONDS, Engine, EngineError

HERE = Path(__file__).with_name("images")
DEBIAN = "localhost/bmq-rehearsal-debian"
DEBIAN_MIRROR = "http://deb.debian.org/debian"
PACKAGES = "ca-certificates,netbase,tzdata"  # what the official Python image has beside Debian's smallest system
AUTHORITIES = Path("/usr/local/share/ca-certificates")  # where a machine has those that Debian does not ship
DOCKERS_REGISTRY = "docker.io"

# The beginning of an image's name -> the file of its stand-in. Grafana has none: no registry of packages has it.
FILES = {"python": "python.Dockerfile", "apache/kafka": "kafka.Dockerfile", "prom/prometheus": "prometheus.Dockerfile"}


def full_name(image: str) -> str:
    """Return a name as podman stores it: with Docker's registry, and with `library` for an official image."""
    return f"{DOCKERS_REGISTRY}/{image}" if "/" in image else f"{DOCKERS_REGISTRY}/library/{image}"


def wanted(dockerfile: str, compose: str) -> dict[str, str]:
    """Return image -> file of each stand-in that a Dockerfile and a compose file ask for."""
    based_on = [line.split()[1] for line in dockerfile.splitlines() if line.startswith("FROM ")]
    started = [service["image"] for service in yaml.safe_load(compose)["services"].values() if "build" not in service]
    images = [*based_on, *started]
    return {image: FILES[name] for image in images for name in FILES if image.startswith(f"{name}:")}


def pip_settings(environment: Mapping[str, str]) -> str:
    """Return pip's settings in the image: Debian's authorities, and the index that the environment names."""
    lines = ["[global]", "cert = /etc/ssl/certs/ca-certificates.crt"]
    index = environment.get("PIP_INDEX_URL")
    return "\n".join([*lines, *([f"index-url = {index}"] if index else []), ""])


def make_stand_ins(engine: Engine, images: Mapping[str, str]) -> None:
    """Make the images of `wanted`.

    1. Debian, once; later calls find it.
    2. What the images copy.
    3. The images. Podman makes only those anew that differ from the last time.
    """
    context = engine.folder / "context"
    context.mkdir(parents=True, exist_ok=True)
    # 1.
    if not (context / "rootfs.tar").exists():
        _bootstrap(engine.folder / "rootfs", context / "rootfs.tar")
    # 2.
    for folder in ("authorities", "libs"):
        shutil.rmtree(context / folder, ignore_errors=True)
        (context / folder).mkdir()
    for authority in sorted(AUTHORITIES.glob("*.crt")):
        shutil.copy2(authority, context / "authorities")
    for jar in broker_jars():
        shutil.copy2(jar, context / "libs")
    shutil.copy2(HERE / "kafka-run", context)
    (context / "pip.conf").write_text(pip_settings(os.environ))
    # 3.
    engine.build(DEBIAN, HERE / "debian.Dockerfile", context, {})
    repository = {"BMQ_MAVEN_REPOSITORY": os.environ.get("BMQ_MAVEN_REPOSITORY", "")}
    for image, file in images.items():
        arguments = repository if file == "python.Dockerfile" else {}
        engine.build(full_name(image), HERE / file, context, arguments)


def _bootstrap(root: Path, archive: Path) -> None:
    """Write an archive of a small Debian, as one file and at once: an archive that is there is whole."""
    mirror = os.environ.get("BMQ_DEBIAN_MIRROR", DEBIAN_MIRROR)
    half = archive.with_suffix(".half")
    shutil.rmtree(root, ignore_errors=True)
    commands = [
        ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root), mirror],
        [
            "tar",
            "--directory",
            str(root),
            "--exclude=./var/cache/apt/archives/*.deb",
            "--create",
            "--file",
            str(half),
            ".",
        ],
    ]
    for command in commands:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_LIMIT_SECONDS)
        if ran.returncode != 0:
            raise EngineError(f"{command[0]} ended with exit code {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr}")
    half.replace(archive)
    shutil.rmtree(root)
