"""The schemas of a schema registry, by their ids, over its REST interface.

    GET /schemas/ids/7  ─►  {"schema": "…"}, the schema as a text

A schema with an id never changes, so a process asks once for each. Knows HTTP and the registry's answers, but neither
records nor feeds. `http.client` and no library of the registry: those need several more packages for this one request.
"""

import json
import logging
import ssl
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from bmq.config import Config
from bmq.errors import SetupError
from bmq.kafka_io.connect import Unreachable, patiently

# Seconds. A registry may be away for this long, as a broker may, before the batch fails; nothing is lost then.
PATIENCE_SECONDS = 120.0
_ANSWER_SECONDS = 10.0  # for one request; it takes milliseconds, unless the registry reads its own topic just then
# Seconds for which an id that the registry does not know is not asked for again: a producer that sends a million
# records with such an id would otherwise cost a million requests.
_UNKNOWN_SECONDS = 10.0
_MOST_UNKNOWN = 10_000  # ids that are remembered so; random bytes may look like any id
_LARGEST_ANSWER = 16 * 1024 * 1024
_NO_SUCH_SCHEMA = 40403  # the registry's own code; another answer with 404 comes from something that is no registry

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Where the registry is, and for whom.

    Attributes
    ----------
    url : http or https, without user and password.
    user, password : of basic authentication; empty: none.
    ca_file : certificates in PEM that the registry's own is checked with; empty: those of this machine.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""


def configured_registry(config: Config) -> RegistryAddress | None:
    """Return the address of the configured registry; None: there is none."""
    registry = config.registry
    if registry.url is None:
        return None
    return RegistryAddress(registry.url, registry.user, registry.password, registry.ca_file)


@lru_cache(maxsize=8)
def registry_at(address: RegistryAddress) -> "SchemaRegistry":
    """Return the registry of this process at an address."""
    return SchemaRegistry(address)


def schemas_of(address: RegistryAddress | None) -> Callable[[int], str] | None:
    """Return what knows the schemas at an address, or None without one; see `SchemaRegistry.schema`."""
    return None if address is None else registry_at(address).schema


class SchemaRegistry:
    """The schemas of one registry.

    Parameters
    ----------
    address : RegistryAddress
    patience_seconds : for how long `schema` asks a registry again that does not answer.
    """

    def __init__(self, address: RegistryAddress, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._address = address
        self._patience_seconds = patience_seconds
        self._schemas: dict[int, str] = {}
        self._refused: dict[int, tuple[float, str]] = {}  # id -> when and why
        self._silent_until = float("-inf")
        self._waits = False

    def schema(self, schema_id: int) -> str:
        """Return the Avro schema with an id, as JSON; asked for once.

        Raises
        ------
        ValueError
            The registry has no Avro schema with this id. The message is a clause about it.
        SetupError
            The registry refuses, or does not answer for so long.
        """
        return self._known(schema_id, self._patience_seconds)

    def schema_at_once(self, schema_id: int) -> str:
        """Return the same for a caller that can do without; ValueError also if the registry cannot be asked."""
        if schema_id not in self._schemas and time.monotonic() < self._silent_until:
            raise ValueError("the registry did not answer")
        try:
            return self._known(schema_id, 0.0)
        except SetupError as error:
            self._silent_until = time.monotonic() + _UNKNOWN_SECONDS
            raise ValueError(str(error)) from error

    def _known(self, schema_id: int, patience_seconds: float) -> str:
        if schema_id not in self._schemas:
            noted, reason = self._refused.get(schema_id, (float("-inf"), ""))
            if time.monotonic() - noted < _UNKNOWN_SECONDS:
                raise ValueError(reason)
            try:
                self._schemas[schema_id] = self._fetch(schema_id, patience_seconds)
            except ValueError as fault:
                if len(self._refused) >= _MOST_UNKNOWN:
                    self._refused.clear()
                self._refused[schema_id] = time.monotonic(), str(fault)
                raise
        return self._schemas[schema_id]

    def ping(self) -> None:
        """Ask the registry for something small, once; raise SetupError if it refuses or does not answer."""
        status, _ = self._ask("/subjects")
        if status == HTTPStatus.NOT_FOUND:
            raise self._not_a_registry("/subjects", status)

    def _fetch(self, schema_id: int, patience_seconds: float) -> str:
        status, answer = patiently(
            lambda: self._ask(f"/schemas/ids/{schema_id}"),
            lambda error: isinstance(error, Unreachable) and self._note_wait(error, patience_seconds),
            patience_seconds,
        )
        self._waits = False
        if status == HTTPStatus.NOT_FOUND:
            if answer.get("error_code") != _NO_SUCH_SCHEMA:
                raise self._not_a_registry(f"/schemas/ids/{schema_id}", status)
            raise ValueError("the registry has none with this id; register it, or have the producer do so")
        kind, schema = answer.get("schemaType", "AVRO"), answer.get("schema")
        if kind != "AVRO" or not isinstance(schema, str):
            raise ValueError(f"that is {kind}, and the feed reads Avro")
        if answer.get("references"):
            raise ValueError("it refers to other schemas; register it with all its types in one schema")
        return schema

    def _note_wait(self, error: Unreachable, patience_seconds: float) -> bool:
        """Log the first of the failures that follow each other; return true."""
        if not self._waits and patience_seconds:
            self._waits = True
            _log.warning("%s The batch waits for it for up to %.0f s.", error, patience_seconds)
        return True

    def _ask(self, path: str) -> tuple[int, dict[str, object]]:
        """Return the status, OK or NOT_FOUND, and the JSON object of an answer; an empty one if it is no object.

        Raises
        ------
        Unreachable : another attempt may succeed.
        SetupError : the registry refuses.
        """
        try:
            status, body = self._request(path)
        except (OSError, HTTPException) as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                raise SetupError(
                    f"{self._place} has a certificate that is not accepted: {error.verify_message}. Set "
                    "registry.ca_file to the certificates of its authority."
                ) from error
            raise Unreachable(
                f"{self._place} does not answer ({error!r}). Start the service again when it does: it goes on at this "
                "batch. Or correct registry.url."
            ) from error
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise Unreachable(
                f"{self._place} answers with {status}. Look at its log, and start the service again when it is well: "
                "it goes on at this batch."
            )
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise SetupError(
                f"{self._place} does not let us in: it answers with {status}. Check registry.user and "
                "registry.password."
            )
        if status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
            raise self._not_a_registry(path, status)
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        return status, answer if isinstance(answer, dict) else {}

    def _request(self, path: str) -> tuple[int, bytes]:
        url = urlsplit(self._address.url)
        assert url.hostname is not None  # the configuration checks this
        connection: HTTPConnection
        if url.scheme == "https":
            trusted = ssl.create_default_context(cafile=self._address.ca_file or None)
            connection = HTTPSConnection(url.hostname, url.port, timeout=_ANSWER_SECONDS, context=trusted)
        else:
            connection = HTTPConnection(url.hostname, url.port, timeout=_ANSWER_SECONDS)
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._address.user:
            secret = b64encode(f"{self._address.user}:{self._address.password}".encode()).decode()
            headers["Authorization"] = f"Basic {secret}"
        try:
            # A redirection is no answer: another host must not get the password.
            connection.request("GET", url.path.rstrip("/") + path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read(_LARGEST_ANSWER)
        finally:
            connection.close()

    def _not_a_registry(self, path: str, status: int) -> SetupError:
        return SetupError(
            f"{self._place} answers GET {path} with {status}, and not as a registry does. Set registry.url to the "
            "address below which it has /schemas and /subjects."
        )

    @property
    def _place(self) -> str:
        return f"The schema registry at {self._address.url}"
