"""Records with additional members."""

from __future__ import annotations

from collections.abc import Mapping

from gatewright._engine import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class View(Mapping):  # type: ignore[type-arg]
    """A record with additional attributes, such as `message.parsed`.

    As a mapping, and in JSON, it is the plain record: the additional attributes are never sent.
    """

    __slots__ = ("_own", "_record")

    def __init__(self, record: Record, **own: Any) -> None:
        self._record = record
        self._own = own

    def __class_getitem__(cls, _: Any) -> type[View]:
        return cls

    def __getattr__(self, name: str) -> Any:
        own = object.__getattribute__(self, "_own")
        return own[name] if name in own else getattr(self._record, name)

    def __getitem__(self, name: str) -> Any:
        value = self._record[name]
        return self._own.get(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._record.keys())

    def __len__(self) -> int:
        return len(self._record)

    def __eq__(self, other: object) -> bool:
        return self._record == (other._record if isinstance(other, View) else other)

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        return [*dir(self._record), *self._own]

    def __repr__(self) -> str:
        own = "".join(f", {name}={value!r}" for name, value in self._own.items())
        return f"{self._record!r}{own}"

    def __copy__(self) -> View:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> View:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._record, self._own)


class LazyView(View):
    """A view whose own attributes are computed when they are first read."""

    __slots__ = ("_computed",)

    def __init__(self, record: Record, **computed: Callable[[], Any]) -> None:
        super().__init__(record)
        self._computed = computed

    def __getattr__(self, name: str) -> Any:
        own = object.__getattribute__(self, "_own")
        compute = object.__getattribute__(self, "_computed").get(name)
        if compute is not None and name not in own:
            own[name] = compute()
        return super().__getattr__(name)

    def _compute_all(self) -> None:
        for name in self._computed:
            getattr(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._computed})

    def __repr__(self) -> str:
        self._compute_all()
        return super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        self._compute_all()
        return super().__reduce__()


def _restored(record: Record, own: dict[str, Any]) -> View:
    return View(record, **own)
