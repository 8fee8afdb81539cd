"""client.images: saves images, in addition to the generated methods."""

from __future__ import annotations

from gatewright._files import save, save_async
from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Unpack

    from gatewright.generated.options import SaveOptions
    from gatewright.types import Image


class Images(resources.Images):
    """client.images."""

    __slots__ = ()

    def save(
        self,
        image: Image | Mapping[str, Any],
        path: str | os.PathLike[str],
        **options: Unpack[SaveOptions],
    ) -> int:
        """Saves an image of a response's `data`; returns its size in bytes.

        Decodes its `b64_json`, or streams its `url` to disk. The data goes to a temporary file, which is
        renamed at the end, so the file is written completely or not at all. A broken transfer is retried
        once: from where it broke off if the server confirms that the file is unchanged, else from the start.
        The API key is not sent. The format is not converted, whatever the extension of the path.

        Args:
            image: One item of a response's `data`.
            path: The file to write. A symbolic link is followed.
            options: overwrite, max_bytes, timeout: see `gatewright.SaveOptions`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> answer = client.images.generate(model="image_model_1", prompt="A boat at sea.")
        >>> client.images.save(answer.data[0], "boat.png", max_bytes=50_000_000) > 0
        True

        Raises:
            FileError: A problem with the disk or with `path`; the cause is the system's error.
            InvalidRequestError: There is neither `b64_json` nor `url`.
            DecodeError: `b64_json` is not base64, or the file is longer than allowed.
            APIStatusError: The server refused the file, for example because its URL has expired, after an
                hour.
            APIConnectionError: The transfer broke off twice.
        """
        return save(self._client, "image", image, path, dict(options))


class AsyncImages(resources.AsyncImages):
    """client.images."""

    __slots__ = ()

    async def save(
        self,
        image: Image | Mapping[str, Any],
        path: str | os.PathLike[str],
        **options: Unpack[SaveOptions],
    ) -> int:
        """Saves an image of a response's `data`; see `Images.save`. Cancelling leaves nothing behind.

        >>> import asyncio, gatewright
        >>> async def draw() -> int:
        ...     async with gatewright.AsyncClient() as client:
        ...         answer = await client.images.generate(model="image_model_1", prompt="A boat at sea.")
        ...         return await client.images.save(answer.data[0], "boat.png")
        >>> asyncio.run(draw()) > 0
        True
        """
        return await save_async(self._client, "image", image, path, dict(options))
