"""client.videos: waits for tasks and saves videos, in addition to the generated
methods."""

from __future__ import annotations

from gatewright._asyncio import finish, running_loop
from gatewright._engine import VideoWatch
from gatewright._files import save, save_async
from gatewright.generated import resources
from gatewright.generated.options import WAITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from typing_extensions import Unpack

    from gatewright.generated.options import SaveOptions, WaitOptions
    from gatewright.types import VideoGenerationRequest, VideoTask

    class VideoGenerationAndWait(VideoGenerationRequest, WaitOptions, total=False):
        """A request, and the options of the wait."""

    OnProgress: TypeAlias = Callable[[VideoTask], object] | None


def _check(options: Mapping[str, object]) -> None:
    for name in options:
        if name not in WAITS:
            from gatewright._mistakes import refused

            raise refused("videos.generations.wait", name, WAITS)


class Videos(resources.Videos):
    """client.videos."""

    __slots__ = ()

    @property
    def generations(self) -> VideosGenerations:
        """client.videos.generations."""
        return VideosGenerations(self._client)


class VideosGenerations(resources.VideosGenerations):
    """client.videos.generations."""

    __slots__ = ()

    def wait(self, task_id: str, **options: Unpack[WaitOptions]) -> VideoTask:
        """Waits until a task is completed and returns it. Unknown states count as in progress.

        After the first answered poll, temporary failures do not end the wait (no connection, a timeout, 408,
        409, 429, 5xx except 501, each after the client's own retries): it keeps polling until the deadline.
        Ctrl-C ends the wait; the task continues.

        Args:
            task_id: The id from submission.
            options: interval, timeout, on_progress: see `gatewright.WaitOptions`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> task = client.videos.generations.create(
        ...     model="video_model_4", prompt="A boat.", duration=3, resolution="720p"
        ... )
        >>> seen = []
        >>> task = client.videos.generations.wait(task.id, interval=0.2, timeout=60, on_progress=seen.append)
        >>> task.status, seen[-1].status
        ('completed', 'completed')

        Raises:
            TaskFailedError: The task failed. The error has the message and body of the task.
            APITimeoutError: The task was not completed in time.
        """
        _check(options)
        on_progress = options.pop("on_progress", None)
        return _last(VideoWatch(self._client._engine, task_id, dict(options)), on_progress)

    def create_and_wait(self, **arguments: Unpack[VideoGenerationAndWait]) -> VideoTask:
        """Submits a task and waits for it. Takes the arguments of `create` and those of `wait`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> task = client.videos.generations.create_and_wait(
        ...     model="video_model_4", prompt="A boat.", duration=3, resolution="720p", interval=0.2
        ... )
        >>> task.status
        'completed'
        """
        request, options, on_progress = _split(self._client, arguments)
        task = self.create(**request)
        return _last(VideoWatch(self._client._engine, task.id, options, submitted=True), on_progress)

    def save(
        self,
        task: VideoTask | Mapping[str, Any],
        path: str | os.PathLike[str],
        **options: Unpack[SaveOptions],
    ) -> int:
        """Saves the video of a completed task, by streaming it to disk; returns its size in bytes.

        The data goes to a temporary file, which is renamed at the end, so the file is written completely or
        not at all. A broken transfer is retried once: from where it broke off if the server confirms that the
        file is unchanged, else from the start. The API key is not sent.

        Args:
            task: A completed task.
            path: The file to write. A symbolic link is followed.
            options: overwrite, max_bytes, timeout: see `gatewright.SaveOptions`.

        >>> import gatewright
        >>> client = gatewright.Client()
        >>> task = client.videos.generations.create_and_wait(
        ...     model="video_model_4", prompt="A boat.", duration=3, resolution="720p", interval=0.2
        ... )
        >>> client.videos.generations.save(task, "boat.mp4", overwrite=True) > 0
        True

        Raises:
            FileError: A problem with the disk or with `path`; the cause is the system's error.
            InvalidRequestError: The task has no video (yet).
            APIStatusError: The server refused the file, for example because its URL has expired.
            APIConnectionError: The transfer broke off twice.
        """
        return save(self._client, "video", task, path, dict(options))


class AsyncVideos(resources.AsyncVideos):
    """client.videos."""

    __slots__ = ()

    @property
    def generations(self) -> AsyncVideosGenerations:
        """client.videos.generations."""
        return AsyncVideosGenerations(self._client)


class AsyncVideosGenerations(resources.AsyncVideosGenerations):
    """client.videos.generations."""

    __slots__ = ()

    async def wait(self, task_id: str, **options: Unpack[WaitOptions]) -> VideoTask:
        """Waits until a task is completed and returns it; see `VideosGenerations.wait`.

        Cancelling ends the wait. `on_progress` may be a coroutine function.

        >>> import asyncio, gatewright
        >>> async def film() -> str:
        ...     async with gatewright.AsyncClient() as client:
        ...         videos = client.videos.generations
        ...         task = await videos.create_and_wait(
        ...             model="video_model_4", prompt="A boat.", duration=3, resolution="720p", interval=0.2
        ...         )
        ...         await videos.save(task, "boat.mp4")
        ...     return task.status
        >>> asyncio.run(film())
        'completed'
        """
        _check(options)
        on_progress = options.pop("on_progress", None)
        return await _last_async(VideoWatch(self._client._engine, task_id, dict(options)), on_progress)

    async def create_and_wait(self, **arguments: Unpack[VideoGenerationAndWait]) -> VideoTask:
        """Submits a task and waits for it. Takes the arguments of `create` and those of `wait`."""
        request, options, on_progress = _split(self._client, arguments)
        task = await self.create(**request)
        watch = VideoWatch(self._client._engine, task.id, options, submitted=True)
        return await _last_async(watch, on_progress)

    async def save(
        self,
        task: VideoTask | Mapping[str, Any],
        path: str | os.PathLike[str],
        **options: Unpack[SaveOptions],
    ) -> int:
        """Saves a completed task's video; see `VideosGenerations.save`. Cancelling leaves nothing
        behind."""
        return await save_async(self._client, "video", task, path, dict(options))


def _split(client: Any, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], OnProgress]:
    """Arguments of the request, options of the wait, and its callback. Errors: an option is wrong."""
    request = dict(arguments)
    options = {name: request.pop(name) for name in WAITS if name in request}
    on_progress = options.pop("on_progress", None)
    # A wait for no task: it reads the options before a video is submitted and paid for.
    VideoWatch(client._engine, "none", options)
    return request, options, on_progress


def _last(watch: VideoWatch, on_progress: OnProgress) -> VideoTask:
    """The task as the last poll found it."""
    found: Any = None
    while (latest := watch.next()) is not None:
        found = latest
        if on_progress is not None:
            outcome: Any = on_progress(found)
            if hasattr(outcome, "__await__"):
                if hasattr(outcome, "close"):
                    outcome.close()
                raise TypeError(
                    "on_progress of Client is a plain function; coroutine functions go with AsyncClient"
                )
    return found  # type: ignore[no-any-return]


async def _last_async(watch: VideoWatch, on_progress: OnProgress) -> VideoTask:
    found: Any = None
    while (latest := await finish(watch.next_async(running_loop()))) is not None:
        found = latest
        if on_progress is not None:
            outcome: Any = on_progress(found)
            if hasattr(outcome, "__await__"):
                await outcome
    return found  # type: ignore[no-any-return]
