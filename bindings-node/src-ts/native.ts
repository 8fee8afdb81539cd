/** Finds and types the native module; everything else in the package reaches it through here. */

import { existsSync } from "node:fs";
import { join } from "node:path";

import { nativeFile, platformName } from "./platform";

/** An answer that has arrived whole. */
export interface NativeResponse {
  readonly status: number;
  /** JSON: an array of `[name, value]`. */
  readonly headers: string;
  readonly requestId?: string;
  /** Attempts made, the successful one included. */
  readonly attempts: number;
  readonly elapsedMs: number;
}

/** Either an answer or a failure: the native side never rejects. */
export interface NativeAnswer extends Partial<NativeResponse> {
  /** JSON of the failure, see `failure.ts`. */
  readonly error?: string;
  readonly body?: string;
  readonly stream?: NativeStream;
}

/** What a stream hands over at one hop: all events that are ready, or how it ended. */
export interface NativeBatch {
  /** JSON documents, in order. Neither events nor an error: the stream is complete. */
  readonly events?: string[];
  readonly error?: string;
}

export interface NativeStream {
  nextBatch(): Promise<NativeBatch>;
  /** Closes the connection at once; a waiting `nextBatch` ends the stream. */
  close(): void;
}

/** One call as it crosses over. Lists of pairs are flat: name, value, name, value. */
export interface NativeCall {
  operation: string;
  path: string[];
  query: string[];
  extraQuery: string[];
  headers: string[];
  /** JSON document. */
  body?: string;
  timeoutMs?: number;
  maxRetries?: number;
}

export interface NativeWait {
  taskId: string;
  intervalMs?: number;
  timeoutMs?: number;
}

export interface NativeClientOptions {
  baseUrl?: string;
  apiKey?: string;
  timeoutMs?: number;
  connectTimeoutMs?: number;
  idleTimeoutMs?: number;
  eventTimeoutMs?: number;
  maxRetries?: number;
  validate?: boolean;
  userAgent: string;
}

export interface NativeClient {
  readonly baseUrl: string;
  call(call: NativeCall, cancellation?: NativeCancellation): Promise<NativeAnswer>;
  open(call: NativeCall, cancellation?: NativeCancellation): Promise<NativeAnswer>;
  waitForVideo(wait: NativeWait, cancellation?: NativeCancellation): Promise<NativeAnswer>;
}

/** Drops the request it was passed to. */
export interface NativeCancellation {
  cancel(): void;
}

export interface NativeModule {
  NativeClient: {
    /** Makes a client, or a JSON description of why it cannot be made. */
    create(options: NativeClientOptions): NativeClient | string;
  };
  Cancellation: new () => NativeCancellation;
  NativeValidator: new (options: NativeValidatorOptions) => NativeValidator;
  /** Runs the `gatewright` program with the arguments after its name; returns its exit code. */
  runProgram(args: string[]): number;
}

export interface NativeValidator {
  /** JSON of the outcome. */
  validate(document: Uint8Array): string;
}

export interface NativeValidatorOptions {
  strict?: boolean;
  models?: string[];
  kitName?: string;
  maxBytes?: number;
}

function load(): NativeModule {
  const path = join(__dirname, "..", nativeFile());
  if (!existsSync(path)) {
    throw new Error(
      `gatewright: no native module for this platform (${platformName()}, Node ${process.version}): ${path} does not exist. ` +
        "Install the package on the platform it runs on, or build it there from source.",
    );
  }
  return require(path) as NativeModule;
}

export const native: NativeModule = load();
