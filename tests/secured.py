"""A real broker with SASL, TLS and ACLs: users with passwords, a client with a certificate, and who may do what.

    BROKER   plain, for the test itself, who may do everything
    SECURE   SASL_SSL, SCRAM-SHA-512
    MUTUAL   TLS; a client shows its certificate

Certificates are made by keytool, which comes with Java.
"""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unsaid
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bmq.broker.broker import Broker
from bmq.broker.java import find_java
from bmq.broker.ports import HOST, free_ports
from tests.brokers import ANSWER_LIMIT_SECONDS

PASSWORD = "a-password-of-tests"  # noqa: S105 - of key stores that live for one test
_VALID = ("-validity", "30", "-keyalg", "EC", "-storetype", "PKCS12", "-storepass", PASSWORD, "-noprompt")

Right = tuple[ResourceType, str, ResourcePatternType, AclOperation]


def right(kind: str, name: str, operation: str, *, prefix: bool = False) -> Right:
    """Return a line of a table of ACLs."""
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    return ResourceType[kind], name, pattern, AclOperation[operation]


class SecuredBroker(Broker):
    """The embedded broker with two more listeners, and nothing allowed on them that no ACL allows."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._stores = directory.absolute() / "stores"
        self._stores.mkdir(parents=True)
        _make_pair(self._stores, "broker", ("-ext", f"SAN=dns:localhost,ip:{HOST}"))
        _make_pair(self._stores, "machine")
        _keytool(
            "-importcert",
            "-alias",
            "machine",
            "-file",
            str(self._stores / "machine.pem"),
            "-keystore",
            str(self._stores / "known.p12"),
            "-storetype",
            "PKCS12",
            "-storepass",
            PASSWORD,
            "-noprompt",
        )
        self._ports = [0, 0]

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def options_of(self, user: str, password: str) -> dict[str, str]:
        """Return the client options of a user with a password."""
        return {
            "bootstrap.servers": f"localhost:{self._ports[0]}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self._stores / "broker.pem"),
        }

    def options_of_machine(self) -> dict[str, str]:
        """Return the client options of the one with a certificate; the broker knows it as User:machine."""
        return {
            "bootstrap.servers": f"localhost:{self._ports[1]}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(self._stores / "broker.pem"),
            "ssl.keystore.location": str(self._stores / "machine.p12"),
            "ssl.keystore.password": PASSWORD,
        }

    def other_certificate(self) -> str:
        """Return a file with a certificate that is not the broker's."""
        return str(self._stores / "machine.pem")

    def add_user(self, user: str, password: str) -> None:
        """Make a user, or give him another password."""
        credentials = UserScramCredentialUpsertion(
            user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode()
        )
        for future in self.admin.alter_user_scram_credentials([credentials]).values():
            future.result(ANSWER_LIMIT_SECONDS)

    def allow(self, user: str, rights: Iterable[Right]) -> None:
        """Add ACLs."""
        for future in self.admin.create_acls([_binding(user, line) for line in rights]).values():
            future.result(ANSWER_LIMIT_SECONDS)

    @contextmanager
    def without(self, user: str, line: Right) -> Iterator[None]:
        """Take an ACL away for a while."""
        kind, name, pattern, operation = line
        wanted = AclBindingFilter(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        for future in self.admin.delete_acls([wanted]).values():
            assert len(future.result(ANSWER_LIMIT_SECONDS)) == 1
        try:
            yield
        finally:
            self.allow(user, [line])

    def _write_properties(self) -> None:
        super()._write_properties()
        file = self.directory / "server.properties"
        lines = dict(line.split("=", 1) for line in file.read_text().splitlines())
        self._ports = free_ports(2)
        lines["listeners"] += f",SECURE://{HOST}:{self._ports[0]},MUTUAL://{HOST}:{self._ports[1]}"
        lines["listener.security.protocol.map"] += ",SECURE:SASL_SSL,MUTUAL:SSL"
        lines |= {
            "advertised.listeners": ",".join(
                address if address.startswith("BROKER") else address.replace(HOST, "localhost")
                for address in lines["listeners"].split(",")
                if not address.startswith("CONTROLLER")
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.secure.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "ssl.keystore.location": str(self._stores / "broker.p12"),
            "ssl.keystore.password": PASSWORD,
            "ssl.keystore.type": "PKCS12",
            "ssl.truststore.location": str(self._stores / "known.p12"),
            "ssl.truststore.password": PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "listener.name.mutual.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
        }
        file.write_text("\n".join(f"{name}={value}" for name, value in lines.items()))


def _binding(user: str, line: Right) -> AclBinding:
    kind, name, pattern, operation = line
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def _make_pair(folder: Path, name: str, more: tuple[str, ...] = ()) -> None:
    """Make a key with a certificate that it signs itself: NAME.p12, and the certificate alone as NAME.pem."""
    store = str(folder / f"{name}.p12")
    _keytool("-genkeypair", "-alias", name, "-dname", f"CN={name}", "-keystore", store, *_VALID, *more)
    _keytool(
        "-exportcert",
        "-rfc",
        "-alias",
        name,
        "-keystore",
        store,
        "-storepass",
        PASSWORD,
        "-file",
        str(folder / f"{name}.pem"),
    )


def _keytool(*arguments: str) -> None:
    subprocess.run([find_java().with_name("keytool"), *arguments], check=True, capture_output=True, timeout=60)
