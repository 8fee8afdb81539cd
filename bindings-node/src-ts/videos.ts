/** Waiting for video tasks (specification 3), beside the generated methods. */

import { Resource } from "./resource";
export type WaitOptions = {};
export class VideosWithWaiting extends Resource {}
