"""Verifies and parses webhooks of a gateway. Needs no client.

Signatures are Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature` over the bytes of
the body. A notification may arrive twice, with the same `webhook-id`.
"""

from __future__ import annotations

from gatewright._engine import read_webhook, unwrap_webhook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gatewright.types import VideoTask

    _Body = bytes | bytearray | memoryview | str
    _Text = str | bytes
    _Headers = Mapping[str, str] | Mapping[str, Sequence[str]] | Iterable[tuple[_Text, _Text]]

__all__ = ["Webhooks", "parse_unsigned", "unwrap"]


def unwrap(body: _Body, headers: _Headers, secrets: str | Sequence[str] | None = None) -> VideoTask:
    """Checks that a webhook was signed with one of the secrets within five minutes; returns its task.

    Args:
        body: The bytes as they arrived, not parsed and serialized again: `request.body` in Django,
            `request.get_data()` in Flask, `await request.body()` in Starlette and FastAPI. At most 1 MiB.
        headers: All headers of the request, in the form of any framework, or as pairs; names are
            case-insensitive.
        secrets: `whsec_…`, or several during a rotation. Default: `GATEWRIGHT_WEBHOOK_SECRET`, where spaces
            separate several secrets.

    >>> import gatewright
    >>> secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
    >>> try:
    ...     task = gatewright.webhooks.unwrap(b"{}", {"webhook-id": "msg_1"}, secret)
    ... except gatewright.WebhookSignatureError as error:
    ...     print(error.code, error.param)
    missing_header webhook-timestamp

    Raises:
        WebhookSignatureError: The signature is not valid; `code` is the reason (`missing_header`,
            `duplicate_header`, `invalid_header`, `timestamp_too_old`, `timestamp_too_new`,
            `no_matching_signature`), `param` names the header.
        DecodeError: The body is too long or is not a task.
        ConfigurationError: There is no secret, or one is malformed.
        TypeError: The body is already parsed.
    """
    return unwrap_webhook(body, headers, secrets)  # type: ignore[no-any-return]


def parse_unsigned(body: _Body) -> VideoTask:
    """Parses a webhook of a gateway that does not sign its webhooks.

    Anyone may have sent it: look up the task before you act on it.

    >>> import gatewright
    >>> body = b'{"id": "video_1", "status": "completed", "model": "video_model_1"}'
    >>> gatewright.webhooks.parse_unsigned(body).status
    'completed'

    Raises:
        DecodeError: The body is too long or is not a task.
    """
    return read_webhook(body)  # type: ignore[no-any-return]


class Webhooks:
    """client.webhooks. The same as the functions of `gatewright.webhooks`."""

    __slots__ = ()

    unwrap = staticmethod(unwrap)
    parse_unsigned = staticmethod(parse_unsigned)
