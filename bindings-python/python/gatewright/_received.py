"""The amount of a stream received before it failed. Imported with the first such error."""

from typing import NamedTuple


class Received(NamedTuple):
    """How much of a stream had arrived."""

    events: int
    """Events that were delivered; heartbeats and terminators do not count."""
    bytes: int
    """Bytes of the body, after decompression."""
