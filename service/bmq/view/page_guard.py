"""Who may ask the page's server for what. Pure: headers in, a refusal or None out.

The server is on this machine, and so is a browser that also shows pages of others. Their scripts may send requests
here, and a name of theirs may be made to lead here. So:

    Host          must be this server's own name, unless a token is needed anyway
    token         in a cookie that pages of others do not send; the address with ?token= sets it
    Origin        of a request that changes something must be this server's own, if the browser sends one
    X-BMQ         must be there in such a request: a page of others may set it only if the server allows it
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SCRIPT_HEADER = "x-bmq"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class PageGuard:
    """The rules of one server.

    Attributes
    ----------
    port : where the server listens.
    token : "" if none is needed.
    read_only : whether every request that changes something is refused.
    """

    port: int
    token: str = ""
    read_only: bool = False

    @property
    def cookie(self) -> str:
        """The name of the cookie with the token; with the port, because all ports of a machine share cookies."""
        return f"bmq_view_{self.port}"

    def may_read(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Refusal | None:
        """Return why a request may not read, or None."""
        if not self.token:
            return self.is_own_host(headers)
        given = cookies.get(self.cookie) or headers.get("authorization", "").removeprefix("Bearer ")
        if self.knows(given):
            return None
        return Refusal(401, "The token is missing or wrong. Open the address that bmq view printed, with its token.")

    def may_change(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Refusal | None:
        """Return why a request may not change anything, or None."""
        refusal = self.may_read(headers, cookies)
        if refusal is not None:
            return refusal
        if self.read_only:
            return Refusal(403, "This page is read-only. Start bmq view without --read-only to change queries.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host", ""):
            return Refusal(403, f"A page of another origin ({origin[:100]}) may not change anything here.")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return Refusal(403, "A page of another site may not change anything here.")
        if SCRIPT_HEADER not in headers:
            return Refusal(403, "A request that changes something needs the header X-BMQ: 1.")
        return None

    def is_own_host(self, headers: Mapping[str, str]) -> Refusal | None:
        """Return a refusal if the request came by a name that is not this machine's loopback."""
        host = headers.get("host", "")
        if host_name(host) in LOOPBACK:
            return None
        return Refusal(421, f"This page is not at {host[:100]!r}. Use http://127.0.0.1:{self.port}/.")

    def knows(self, token: str) -> bool:
        """Return whether a token is the right one."""
        return bool(self.token) and hmac.compare_digest(token.encode(), self.token.encode())


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def security_headers(tile_origin: str = "") -> dict[str, str]:
    """Return the headers of every answer.

    Parameters
    ----------
    tile_origin : "https://tiles.example.org": the only other place from which the page may load images.
    """
    tiles = f" {tile_origin}" if tile_origin else ""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "font-src": "'self'",
        "img-src": f"'self' data: blob:{tiles}",
        "connect-src": f"'self'{tiles}",
        "worker-src": "'self' blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
    }
