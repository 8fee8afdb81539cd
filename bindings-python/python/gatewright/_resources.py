"""The resources of the clients: the generated ones, some with additional hand-written methods."""

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
    """All resources of a Client."""

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
    """All resources of an AsyncClient."""

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
