"""client.images: saving images (specification 2.11), beside the generated methods."""

from __future__ import annotations

from gatewright._files import save, save_async
from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    from gatewright.types import Image


class Images(resources.Images):
    """client.images."""

    __slots__ = ()

    def save(
        self,
        image: Image | Mapping[str, Any],
        path: str | os.PathLike[str],
        *,
        overwrite: bool = True,
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Saves an image of an answer's `data`, in whichever form it came; returns its size in bytes.

        Its `b64_json` is decoded, its `url` streamed to disk. The file is there whole or not at all: it is
        written beside its place and renamed at the end. A transfer that breaks off is taken up again once,
        where it stopped if the server can tell that the file is still the same. The key is not sent. The
        image is stored as it is, whatever the path ends in.

        Args:
            image: One of an answer's `data`.
            path: Where to. A symbolic link is followed.
            overwrite: Whether a file that is there is replaced.
            max_bytes: Bound on the file. Default 4 GiB.
            timeout: Seconds for all of it. Default: none; the client's `connect_timeout` and `idle_timeout`
                hold.

        Raises:
            FileError: Trouble with the disk or with what is at `path`; its cause is the system's error.
            InvalidRequestError: There is neither `b64_json` nor `url`.
            DecodeError: `b64_json` is not base64, or the file is longer than allowed.
            APIStatusError: The address has expired (8: one hour), say.
            APIConnectionError: The transfer broke off twice.
        """
        return save(self._client, "image", image, path, overwrite, max_bytes, timeout)


class AsyncImages(resources.AsyncImages):
    """client.images."""

    __slots__ = ()

    async def save(
        self,
        image: Image | Mapping[str, Any],
        path: str | os.PathLike[str],
        *,
        overwrite: bool = True,
        max_bytes: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Saves an image of an answer's `data`; as `Images.save`. Cancelling leaves nothing behind."""
        return await save_async(self._client, "image", image, path, overwrite, max_bytes, timeout)
