"""Writes what an installation consists of, as a CycloneDX document: the pinned Python packages, and the jars.

    make sbom

Python packages are those of `requirements.lock`, jars those of `jars.sha256`, with the coordinates that Ivy found.
"""

import json
import re
import sys
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from bmq.broker.jars import CHECKSUMS, broker_jars, read_checksums, spark_jars

ROOT = Path(__file__).parents[1]
_PACKAGE = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")


def main() -> None:
    """Print the document."""
    bom = Bom()
    whole = bom.metadata.component = Component(name="bmq", type=ComponentType.APPLICATION, bom_ref="bmq")
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if found := _PACKAGE.match(line):
            name, version = found.groups()
            url = PackageURL("pypi", None, name.lower(), version)
            bom.components.add(Component(name=name, version=version, purl=url, bom_ref=str(url)))
    checksums = read_checksums(CHECKSUMS)
    for jar in [*spark_jars(), *broker_jars()]:
        bom.components.add(_component(jar, checksums[jar.name]))
    bom.register_dependency(whole, bom.components)
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    json.dump(document, sys.stdout, indent=1)
    print()


def _component(jar: Path, checksum: str) -> Component:
    """Return a jar of Ivy's folder ``group/artifact/jars/artifact-version.jar``."""
    group, artifact = jar.parts[-4], jar.parts[-3]
    version = jar.stem.removeprefix(f"{artifact}-")
    url = PackageURL("maven", group, artifact, version)
    return Component(
        name=artifact,
        group=group,
        version=version,
        purl=url,
        bom_ref=str(url),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)],
    )


if __name__ == "__main__":
    main()
