/** Waiting for video tasks (specification 3), beside the generated methods. */

import { CallSite } from "./failure";
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
  /** Aborting it stops waiting at once; the task goes on. */
  signal?: AbortSignal | undefined;
}

/** `client.videos.generations`, with methods that wait. */
export class VideoGenerations extends VideosGenerationsResource {
  /**
   * Waits until a task is completed or failed, and gives it as it is when completed. Other states, unknown ones
   * included, count as under way.
   *
   * Errors: `TaskFailedError` with the task's own message, `APITimeoutError`, those of `retrieve`.
   *
   * Source: specification 2.7, 3.
   */
  wait(taskId: string, options: WaitOptions = {}): ApiPromise<VideoTask> {
    return this.connection.waitForVideo<VideoTask>(taskId, options, new CallSite(this.wait));
  }

  /**
   * Submits a task and waits for it. Errors: those of `create`, then those of `wait`.
   *
   * Source: specification 2.6, 2.7, 3.
   */
  createAndWait(params: VideoGenerationRequest, options: WaitOptions = {}): ApiPromise<VideoTask> {
    const site = new CallSite(this.createAndWait);
    const { signal } = options;
    return new ApiPromise((resolve, reject) => {
      this.connection
        .send<VideoTask>(operations.create_video, [], params, { signal }, site)
        .then((task) => this.connection.waitForVideo<VideoTask>(task.id, options, site))
        .then(resolve, reject);
    });
  }
}

/** `client.videos` */
export class VideosWithWaiting extends VideosResource {
  override readonly generations: VideoGenerations = new VideoGenerations(this.connection);
}
