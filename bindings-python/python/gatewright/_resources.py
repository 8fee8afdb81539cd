"""What hangs on the clients: the generated resources, some with methods written by hand beside them."""

from __future__ import annotations

from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gatewright._images import AsyncImages, Images
    from gatewright._videos import AsyncVideos, Videos
    from gatewright.webhooks import Webhooks


class _Webhooks:
    @property
    def webhooks(self) -> Webhooks:
        """client.webhooks."""
        from gatewright.webhooks import Webhooks

        return Webhooks()


class Resources(_Webhooks, resources.Resources):
    """Everything that hangs on a Client."""

    # Imported when they are first used: most programs use neither.
    @property
    def videos(self) -> Videos:
        """client.videos."""
        from gatewright._videos import Videos

        return Videos(self)

    @property
    def images(self) -> Images:
        """client.images."""
        from gatewright._images import Images

        return Images(self)


class AsyncResources(_Webhooks, resources.AsyncResources):
    """Everything that hangs on an AsyncClient."""

    @property
    def videos(self) -> AsyncVideos:
        """client.videos."""
        from gatewright._videos import AsyncVideos

        return AsyncVideos(self)

    @property
    def images(self) -> AsyncImages:
        """client.images."""
        from gatewright._images import AsyncImages

        return AsyncImages(self)
