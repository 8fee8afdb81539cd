"""Waiting for video tasks (specification 3), beside the generated methods. The polling is the core's."""

from __future__ import annotations

from gatewright.generated.resources import AsyncVideos, AsyncVideosGenerations, Videos, VideosGenerations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gatewright.types import VideoGenerationRequest, VideoTask


class VideosWithWaiting(Videos):
    """client.videos."""

    __slots__ = ()

    @property
    def generations(self) -> GenerationsWithWaiting:
        """client.videos.generations."""
        return GenerationsWithWaiting(self._client)


class GenerationsWithWaiting(VideosGenerations):
    """client.videos.generations."""

    __slots__ = ()

    def wait(self, task_id: str, *, interval: float = 5.0, timeout: float = 1800.0) -> VideoTask:
        """Waits until a task is completed and returns it; states it does not know count as under way.

        Args:
            task_id: The id from submission.
            interval: Seconds between look-ups (3).
            timeout: Seconds for the whole wait.

        Raises:
            TaskFailedError: The task failed; the message is its own (2.7).
            APITimeoutError: It was not done in time.
        """
        return self._client._native.wait_for_video(task_id, interval, timeout)  # type: ignore[no-any-return]

    def create_and_wait(
        self, *, interval: float = 5.0, timeout: float = 1800.0, **request: Unpack[VideoGenerationRequest]
    ) -> VideoTask:
        """Submits a task and waits for it. Arguments of the request: as `create`; the others as `wait`."""
        task = self.create(**request)
        return self.wait(task.id, interval=interval, timeout=timeout)


class AsyncVideosWithWaiting(AsyncVideos):
    """client.videos."""

    __slots__ = ()

    @property
    def generations(self) -> AsyncGenerationsWithWaiting:
        """client.videos.generations."""
        return AsyncGenerationsWithWaiting(self._client)


class AsyncGenerationsWithWaiting(AsyncVideosGenerations):
    """client.videos.generations."""

    __slots__ = ()

    async def wait(self, task_id: str, *, interval: float = 5.0, timeout: float = 1800.0) -> VideoTask:
        """Waits until a task is completed and returns it; as `GenerationsWithWaiting.wait`."""
        return await self._client._wait_for_video(task_id, interval, timeout)  # type: ignore[no-any-return]

    async def create_and_wait(
        self, *, interval: float = 5.0, timeout: float = 1800.0, **request: Unpack[VideoGenerationRequest]
    ) -> VideoTask:
        """Submits a task and waits for it. Arguments of the request: as `create`; the others as `wait`."""
        task = await self.create(**request)
        return await self.wait(task.id, interval=interval, timeout=timeout)
