"""The HTTP metadata of a response: status, headers, request id, attempts and time taken."""

from __future__ import annotations

from gatewright._engine import Record
from gatewright._streams import AsyncStream, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, ParamSpec, TypeVar, overload

    from gatewright._engine import ResponseInfo

    _Arguments = ParamSpec("_Arguments")
    _Result = TypeVar("_Result")


def response_of(result: Record | Stream[Any] | AsyncStream[Any]) -> ResponseInfo | None:
    """Status, headers, request id, attempts and time taken of a result or a stream.

    None for a record that is not a whole response: an inner record, an event, or one that you created. A
    list, text, bytes or None carries no metadata: call the method through `with_response`.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> gatewright.response_of(client.models.list()).status_code
    200
    """
    if isinstance(result, Record) or hasattr(result, "_record"):
        return result._response  # type: ignore[union-attr]
    if isinstance(result, (Stream, AsyncStream)):
        return result.response
    kind = type(result).__name__
    raise TypeError(f"response_of: a {kind} carries no metadata; call the method by with_response")


if TYPE_CHECKING:

    @overload
    def with_response(  # type: ignore[overload-overlap]
        method: Callable[_Arguments, Awaitable[_Result]],
        /,
        *arguments: _Arguments.args,
        **members: _Arguments.kwargs,
    ) -> Awaitable[tuple[_Result, ResponseInfo]]: ...
    @overload
    def with_response(
        method: Callable[_Arguments, _Result],
        /,
        *arguments: _Arguments.args,
        **members: _Arguments.kwargs,
    ) -> tuple[_Result, ResponseInfo]: ...


def with_response(method: Callable[..., Any], /, *arguments: Any, **members: Any) -> Any:
    """Calls a method of a client; returns its result and the metadata of its response.

    This works for every result, also a list, text, bytes or None. If a method sends several requests, the
    metadata is that of the last response. With `AsyncClient`, await the pair.

    >>> import gatewright
    >>> client = gatewright.Client()
    >>> models, response = gatewright.with_response(client.models.list)
    >>> response.status_code
    200
    """
    owner: Any = getattr(method, "__self__", None)
    client = getattr(owner, "_client", owner)
    if not hasattr(client, "_engine"):
        raise TypeError("with_response needs a method of a client, such as client.models.list")
    responses: list[ResponseInfo] = []
    twin = client.__copy__()
    twin._engine = client._engine.noting(responses)
    bound = getattr(twin if owner is client else type(owner)(twin), method.__name__)
    result = bound(*arguments, **members)
    return _awaited(result, responses) if hasattr(result, "__await__") else _pair(result, responses)


async def _awaited(awaited: Awaitable[Any], responses: list[ResponseInfo]) -> tuple[Any, ResponseInfo]:
    return _pair(await awaited, responses)


def _pair(result: Any, responses: list[ResponseInfo]) -> tuple[Any, ResponseInfo]:
    if isinstance(result, (Record, Stream, AsyncStream)):
        response = response_of(result)
        assert response is not None
        return result, response
    if not responses:
        raise TypeError("with_response: the method returned no response of the gateway")
    return result, responses[-1]
