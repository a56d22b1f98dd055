"""The errors that this service raises on purpose; all others derive from one of these.

ServiceError
├── ConfigError       the process cannot start; exit code 2
├── SetupError        something outside is missing (Java, a jar, a broker, a port); exit code 1
├── ControlError      one control command is rejected with a code of docs/wire-format.md; the job goes on
├── ReadingError      one record is not a reading; it becomes a dead letter with a code; the job goes on
└── StateError        the saved state cannot be used; the job stops

This module knows the errors and nothing else. Each message has the value, the rule and the way out. The outer layer
adds the place (topic, partition, offset) and the effect on everything else.
"""

from enum import StrEnum


class ServiceError(Exception):
    """Base class, so that the command line catches one name."""

    exit_code = 1


class ConfigError(ServiceError):
    """The configuration cannot be used; the process has started nothing."""

    exit_code = 2


class SetupError(ServiceError):
    """Something outside the service is missing or broken: Java, a jar, a broker, a port."""


class StateError(ServiceError):
    """The saved state cannot be used. The job stops, because it would lose memberships if it went on."""


class ControlCode(StrEnum):
    """Why a control command was rejected, or events go to another topic; fixed by docs/wire-format.md."""

    NOT_JSON = "not_json"
    UNKNOWN_KIND = "unknown_kind"
    UNKNOWN_FIELD = "unknown_field"
    UNKNOWN_FEED = "unknown_feed"
    UNKNOWN_DIMENSION = "unknown_dimension"
    UNKNOWN_QUERY = "unknown_query"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    BAD_REGION = "bad_region"
    BAD_DURATION = "bad_duration"
    BAD_OPTION = "bad_option"
    OVER_LIMIT = "over_limit"
    FORBIDDEN = "forbidden"


class ControlError(ServiceError):
    """The service rejects one control command; nothing changes."""

    def __init__(self, code: ControlCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class DeadLetterCode(StrEnum):
    """The reason why a record of a feed is not a reading; docs/wire-format.md fixes the codes."""

    NOT_JSON = "not_json"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    NOT_FINITE = "not_finite"
    OUT_OF_RANGE = "out_of_range"
    TOO_LARGE = "too_large"
    NO_STREAM_ID = "no_stream_id"


class ReadingError(ServiceError):
    """One record is not a reading. It becomes a dead letter; no stream moves."""

    def __init__(self, code: DeadLetterCode, message: str) -> None:
        super().__init__(message)
        self.code = code
