"""Pages of lists that continue with the next page."""

from __future__ import annotations

from gatewright._view import View
from gatewright.generated.errors import DecodeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, ItemsView, Iterator, KeysView, ValuesView
    from typing import Any


class _Page(View):
    """A page, and how the next one is fetched."""

    __slots__ = ("_call", "_fetch")

    def __init__(self, record: Any, fetch: Callable[[str], Any] | None, call: tuple[str, str]) -> None:
        super().__init__(record)
        self._fetch = fetch
        # Operation and method, for errors.
        self._call = call

    # The views of the record: iterating over a page gives elements, not names.
    def keys(self) -> KeysView[str]:
        return self._record.keys()

    def values(self) -> ValuesView[Any]:
        return self._record.values()

    def items(self) -> ItemsView[str, Any]:
        return self._record.items()

    def __contains__(self, name: object) -> bool:
        return name in self._record

    def __reduce__(self) -> tuple[Any, ...]:
        # By itself a page pickles as the record that it is.
        return self._record.__reduce__()  # type: ignore[return-value]

    def _end(self) -> str | None:
        """Where the next page begins: its token, or the last item of this one. None on the last page."""
        return self.get("nextPageToken") or (self.get("last_id") if self.get("has_more") else None)

    def _next(self) -> Any:
        """A function that fetches the next page; None after the last."""
        end = self._end()
        if self._fetch is None or end is None:
            return None
        return self._fetch(end)

    def _elements(self) -> Any:
        """The elements of this page."""
        return iter(self._record)


class _CycleDetector:
    """Notices a list that leads back to an earlier page.

    It compares each end of a page with a single earlier one (Brent's algorithm), so that the memory it needs
    doesn't grow with the list.
    """

    def __init__(self) -> None:
        self._earlier: str | None = None
        self._steps = 0
        self._stride = 0

    def check(self, page: _Page) -> None:
        """Raises DecodeError if an earlier page ended in the same place."""
        end = page._end()
        if end is None:
            return
        if end == self._earlier:
            error = DecodeError(f"the list leads back to an earlier page: {end!r}")
            raise error._in_call(*page._call, page._record._response)
        if self._steps == self._stride:
            self._earlier, self._stride, self._steps = end, max(2 * self._stride, 1), 0
        self._steps += 1


class Page(_Page):
    """A page whose iteration continues with the items of the next pages."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        page, cycle = self, _CycleDetector()
        cycle.check(page)
        yield from page._elements()
        while (following := page._next()) is not None:
            page = following
            cycle.check(page)
            yield from page._elements()


class AsyncPage(_Page):
    """A page whose asynchronous iteration continues with the items of the next pages."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self._elements()  # type: ignore[no-any-return]

    async def __aiter__(self) -> AsyncIterator[Any]:
        page, cycle = self, _CycleDetector()
        cycle.check(page)
        for item in page._elements():
            yield item
        while (fetching := page._next()) is not None:
            page = await fetching
            cycle.check(page)
            for item in page._elements():
                yield item
