/** `client.videos`: waits for tasks and saves their videos, in addition to the generated methods. */

import type { Connection } from "./connection";
import { CallSite } from "./failure";
import { operations } from "./generated/operations";
import type { SaveOptions, WaitOptions } from "./generated/options";
import { VideosGenerationsResource, VideosResource } from "./generated/resources";
import type { VideoGenerationRequest, VideoTask } from "./generated/types";
import { ApiPromise } from "./promise";

/** `client.videos.generations`, with methods that wait and save. */
export class VideoGenerations extends VideosGenerationsResource {
  /**
   * Polls a task until it is completed or failed, and returns the completed task. Other states, including
   * unknown ones, count as in progress.
   *
   * After the first answered poll, temporary failures do not end the wait (no connection, a timeout, 408,
   * 409, 429, 5xx except 501, each after the client's own retries): it keeps polling until the deadline.
   *
   * Errors: `TaskFailedError` with the task's own message, `APITimeoutError`, those of `retrieve`.
   *
   * Source: sections 2.7 and 3 of the specification.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const { generations } = new Client().videos;
   * const boat = { model: "video_model_4", prompt: "A boat at sea.", duration: 3, resolution: "720p" };
   * const { id } = await generations.create(boat);
   * const task = await generations.wait(id, { intervalMs: 200, onProgress: ({ status }) => console.log(status) });
   * console.log(task.output.url);
   * ```
   */
  wait(taskId: string, options: WaitOptions = {}): ApiPromise<VideoTask> {
    const site = new CallSite(this.wait);
    return promise(last(this.connection, taskId, options, false, site));
  }

  /**
   * Submits a task and waits for it. Errors: those of `create`, then those of `wait`.
   *
   * Source: sections 2.6, 2.7 and 3 of the specification.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const { generations } = new Client().videos;
   * const boat = { model: "video_model_4", prompt: "A boat at sea.", duration: 3, resolution: "720p" };
   * const task = await generations.createAndWait(boat, { intervalMs: 200, signal: AbortSignal.timeout(120_000) });
   * console.log(task.status);
   * ```
   */
  createAndWait(params: VideoGenerationRequest, options: WaitOptions = {}): ApiPromise<VideoTask> {
    const site = new CallSite(this.createAndWait);
    const { connection } = this;
    const work = async () => {
      // A wait for no task: it reads the options before a video is submitted and paid for.
      connection.watchVideo("none", options, true, site);
      const { signal } = options;
      const task = await connection.send<VideoTask>(operations.create_video, [], params, { signal }, site);
      return last(connection, task.id, options, true, site);
    };
    return promise(work());
  }

  /**
   * Streams the video of a completed task to disk; returns its size in bytes.
   *
   * The data goes to a temporary file, which is renamed at the end, so the file is written completely or not
   * at all. A broken transfer is retried once: from where it broke off if the server confirms that the file
   * is unchanged, else from the start. The API key is not sent.
   *
   * Errors: `FileError` for a problem with the disk or with `path`, `InvalidRequestError` if the task has no video
   * (yet), `APIStatusError` if, for example, the URL has expired, `APIConnectionError`.
   *
   * Source: sections 2.7 and 4 of the specification.
   *
   * @param path A path, or a `file:` URL. A symbolic link is followed.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const { generations } = new Client().videos;
   * const boat = { model: "video_model_4", prompt: "A boat at sea.", duration: 3, resolution: "720p" };
   * const task = await generations.createAndWait(boat, { intervalMs: 200 });
   * console.log(await generations.save(task, "boat.mp4", { overwrite: true }), "bytes");
   * ```
   */
  save(task: VideoTask, path: string | URL, options: SaveOptions = {}): Promise<number> {
    return this.connection.save("video", task, path, options, new CallSite(this.save));
  }
}

/** `client.videos` */
export class Videos extends VideosResource {
  override readonly generations: VideoGenerations = new VideoGenerations(this.connection);
}

/** The task at the last poll. `submitted`: the gateway has just accepted it. */
async function last(
  connection: Connection,
  taskId: string,
  { signal, onProgress, ...options }: WaitOptions,
  submitted: boolean,
  site: CallSite,
): Promise<VideoTask> {
  const watch = connection.watchVideo(taskId, options, submitted, site);
  for (;;) {
    const task = await connection.run<VideoTask>(
      operations.retrieve_video,
      signal,
      site,
      (number, cancellation) => watch.next(number, cancellation),
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
