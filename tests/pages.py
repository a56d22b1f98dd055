"""A page of the service's endpoint, with a user and over TLS if it needs that."""

import ssl
import urllib.error
import urllib.request


def get(url: str, user: str = "", password: str = "", context: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Return status and body of a page."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if user:
        passwords = urllib.request.HTTPPasswordMgrWithPriorAuth()
        passwords.add_password(None, url, user, password, is_authenticated=True)
        handlers.append(urllib.request.HTTPBasicAuthHandler(passwords))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=10) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except ValueError:  # urllib gives up after some attempts with the wrong password
        return 401, ""
