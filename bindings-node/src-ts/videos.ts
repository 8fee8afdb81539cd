/** `client.videos`: waiting for tasks (specification 3) and saving their videos, beside the generated methods. */

import type { Connection } from "./connection";
import { CallSite } from "./failure";
import type { SaveOptions } from "./files";
import { operations } from "./generated/operations";
import { VideosGenerationsResource, VideosResource } from "./generated/resources";
import type { VideoGenerationRequest, VideoTask } from "./generated/types";
import { ApiPromise } from "./promise";

/** How a task is waited for. */
export interface WaitOptions {
  /** Pause between two look-ups, in milliseconds. Default: 5000, as in the specification. */
  intervalMs?: number | undefined;
  /** Bounds the whole wait, in milliseconds. Default: 1800000. */
  timeoutMs?: number | undefined;
  /**
   * Called with the task as each look-up finds it, the last one included, and awaited. What it throws ends the wait and
   * is what the caller gets.
   */
  onProgress?: ((task: VideoTask) => unknown) | undefined;
  /** Aborting it stops waiting at once; the task goes on. */
  signal?: AbortSignal | undefined;
}

/** `client.videos.generations`, with methods that wait and save. */
export class VideoGenerations extends VideosGenerationsResource {
  /**
   * Waits until a task is completed or failed, and gives it as it is when completed. Other states, unknown ones
   * included, count as under way.
   *
   * Once the gateway has answered a look-up, the wait outlives look-ups that fail in a way that passes (no connection, a
   * timeout, 408, 409, 429, 5xx but 501, each after the client's own retries): it looks again until the deadline.
   *
   * Errors: `TaskFailedError` with the task's own message, `APITimeoutError`, those of `retrieve`.
   *
   * Source: specification 2.7, 3.
   */
  wait(taskId: string, options: WaitOptions = {}): ApiPromise<VideoTask> {
    const site = new CallSite(this.wait);
    return promise(last(this.connection, taskId, options, false, site));
  }

  /**
   * Submits a task and waits for it. Errors: those of `create`, then those of `wait`.
   *
   * Source: specification 2.6, 2.7, 3.
   */
  createAndWait(params: VideoGenerationRequest, options: WaitOptions = {}): ApiPromise<VideoTask> {
    const site = new CallSite(this.createAndWait);
    const { signal } = options;
    const created = this.connection.send<VideoTask>(operations.create_video, [], params, { signal }, site);
    return promise(created.then((task) => last(this.connection, task.id, options, true, site)));
  }

  /**
   * Saves the video of a completed task, by streaming it to disk; gives its size in bytes.
   *
   * The file is there whole or not at all: it is written beside its place and renamed at the end. A transfer that breaks
   * off is taken up again once, where it stopped if the server can tell that the file is still the same. The key is not
   * sent.
   *
   * Errors: `FileError` for trouble with the disk or with what is at `path`, `InvalidRequestError` where the task has no
   * video (yet), `APIStatusError` where the address has expired, say, `APIConnectionError`.
   *
   * Source: specification 2.7, 4.
   *
   * @param path A path, or a `file:` URL. A symbolic link is followed.
   */
  save(task: VideoTask, path: string | URL, options: SaveOptions = {}): Promise<number> {
    return this.connection.save("video", task, path, options, new CallSite(this.save));
  }
}

/** `client.videos` */
export class Videos extends VideosResource {
  override readonly generations: VideoGenerations = new VideoGenerations(this.connection);
}

/** The task as the last look-up finds it. `submitted`: the gateway has just taken it. */
async function last(
  connection: Connection,
  taskId: string,
  { signal, onProgress, ...options }: WaitOptions,
  submitted: boolean,
  site: CallSite,
): Promise<VideoTask> {
  const watch = connection.watchVideo(taskId, options, submitted, site);
  for (;;) {
    const task = await connection.run<VideoTask>(operations.retrieve_video, signal, site, (cancellation) =>
      watch.next(cancellation),
    );
    await onProgress?.(task);
    if (watch.completed) return task;
  }
}

function promise<T>(work: Promise<T>): ApiPromise<T> {
  return new ApiPromise((resolve, reject) => {
    work.then(resolve, reject);
  });
}
