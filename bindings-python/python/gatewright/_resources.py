"""The resources of the clients: the generated ones, some with additional hand-written methods."""

from __future__ import annotations

from gatewright._chat import AsyncChat, Chat
from gatewright._messages import AsyncMessages, Messages
from gatewright._response_resource import AsyncResponses, Responses
from gatewright.generated import resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gatewright._images import AsyncImages, Images
    from gatewright._native import AsyncNative, Native
    from gatewright._videos import AsyncVideos, Videos
    from gatewright.webhooks import Webhooks


def _explain(self: object, name: str) -> Any:
    from gatewright._missing import missing

    # The docstring of a resource is its place: client.chat.completions.
    place = (type(self).__doc__ or "").removesuffix(".")
    raise missing(self, place, name)


for _kind in vars(resources).values():
    if "_client" in getattr(_kind, "__slots__", ()):
        _kind.__getattr__ = _explain


class _Webhooks:
    @property
    def webhooks(self) -> Webhooks:
        """client.webhooks."""
        from gatewright.webhooks import Webhooks

        return Webhooks()


class Resources(_Webhooks, resources.Resources):
    """All resources of a Client."""

    @property
    def chat(self) -> Chat:
        """client.chat."""
        return Chat(self)

    @property
    def responses(self) -> Responses:
        """client.responses."""
        return Responses(self)

    @property
    def messages(self) -> Messages:
        """client.messages."""
        return Messages(self)

    # Imported when they are first used: most programs use none of them.
    @property
    def native(self) -> Native:
        """client.native."""
        from gatewright._native import Native

        return Native(self)

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
    def chat(self) -> AsyncChat:
        """client.chat."""
        return AsyncChat(self)

    @property
    def responses(self) -> AsyncResponses:
        """client.responses."""
        return AsyncResponses(self)

    @property
    def messages(self) -> AsyncMessages:
        """client.messages."""
        return AsyncMessages(self)

    @property
    def native(self) -> AsyncNative:
        """client.native."""
        from gatewright._native import AsyncNative

        return AsyncNative(self)

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
