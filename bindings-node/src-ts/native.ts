/** Finds and types the native module; everything else in the package reaches it through here. */

import { existsSync } from "node:fs";
import { join } from "node:path";

import type { Callback } from "./callbacks";
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

/** What a stream hands over at one hop: all that is ready, or how it ended. */
export interface NativeBatch {
  /** In order. Neither documents nor an error: the stream is complete. */
  readonly documents?: string[];
  readonly error?: string;
}

export interface NativeStream {
  /** Events, each a JSON document. */
  nextBatch(): Promise<NativeBatch>;
  /** Frames as they came, each a JSON object; see `RawEvent`. */
  nextFrames(): Promise<NativeBatch>;
  /** The new text. */
  nextText(): Promise<NativeBatch>;
  /** Reads on to the end; the body is what all events add up to. */
  finish(): Promise<NativeAnswer>;
  /** Closes the connection at once; whoever waits is told of the end. */
  close(): void;
  /** As `close`, but whoever waits, or reads next, is told of it by an error. */
  cancel(): void;
}

/** One call as it crosses over. Lists of pairs are flat: name, value, name, value. */
export interface NativeCall {
  operation: string;
  path: string[];
  query: string[];
  headers: string[];
  /** JSON document. */
  body?: string;
  options?: NativeRequestOptions;
}

/** Options of one call, or of all calls of a client. */
export interface NativeRequestOptions {
  timeoutMs?: number;
  firstByteTimeoutMs?: number;
  idleTimeoutMs?: number;
  eventTimeoutMs?: number;
  maxRetries?: number;
  headers?: string[];
  query?: string[];
  /** JSON object. */
  body?: string;
  idempotencyKey?: string;
  validate?: boolean;
}

export interface NativeWait {
  taskId: string;
  intervalMs?: number;
  timeoutMs?: number;
  /** Whether the gateway has just taken the task. */
  submitted: boolean;
}

/** A wait for a video task. */
export interface NativeWatch {
  /** Whether the latest look-up found the task completed. */
  readonly completed: boolean;
  /** The task as the next look-up finds it. */
  next(cancellation?: NativeCancellation): Promise<NativeAnswer>;
}

/** What is to be saved, and where. */
export interface NativeSaving {
  kind: "image" | "video";
  /** JSON of the record. */
  record: string;
  path: string;
  overwrite?: boolean;
  maxBytes?: number;
  timeoutMs?: number;
}

export interface NativeClientOptions {
  baseUrl?: string;
  apiKey?: string;
  /** Whether the callback gives the key. */
  asksForKey?: boolean;
  timeoutMs?: number;
  connectTimeoutMs?: number;
  firstByteTimeoutMs?: number;
  idleTimeoutMs?: number;
  eventTimeoutMs?: number;
  maxRetries?: number;
  maxBodyBytes?: number;
  maxConnections?: number;
  poolTimeoutMs?: number;
  maxIdleConnections?: number;
  idleConnectionTimeoutMs?: number;
  /** Empty: none. */
  proxy?: string;
  caBundle?: string;
  clientCertificate?: string;
  defaultHeaders?: string[];
  defaultQuery?: string[];
  /** Which functions each middleware has. */
  middleware?: { before: boolean; after: boolean }[];
  validate?: boolean;
  userAgent: string;
}

export interface NativeClient {
  readonly baseUrl: string;
  /** A client over the same connections, or a JSON description of why it cannot be made. */
  withOptions(options: NativeRequestOptions): NativeClient | string;
  call(call: NativeCall, cancellation?: NativeCancellation): Promise<NativeAnswer>;
  open(call: NativeCall, cancellation?: NativeCancellation): Promise<NativeAnswer>;
  /** A wait, or a JSON description of why it cannot begin. */
  watchVideo(wait: NativeWait): NativeWatch | string;
  /** The answer's body is the size of the file. */
  save(saving: NativeSaving, cancellation?: NativeCancellation): Promise<NativeAnswer>;
}

/** Drops the request it was passed to, and tells its callbacks which call they are part of. */
export interface NativeCancellation {
  cancel(): void;
}

/** A run of the check kit, on its own threads. */
export interface NativeCheckRun {
  /** The next event as JSON, if one comes within a second. */
  next(): Promise<{ readonly error?: string; readonly done: boolean; readonly event?: string }>;
  cancel(): void;
  /** Report and evidence as JSON, once the run is done, or JSON of the failure. */
  outcome(): { readonly report: string; readonly evidence: string; readonly interrupted: boolean } | string;
  writeReport(path: string): Promise<NativeWritten>;
  writeEvidence(folder: string): Promise<NativeWritten>;
}

/** What came of writing. */
export interface NativeWritten {
  /** JSON of the failure. */
  readonly error?: string;
  readonly names: string[];
}

export interface NativeModule {
  NativeCheckRun: {
    /** Begins a run, or gives a JSON description of why the kit refuses. */
    create(options: string, apiKey: string): NativeCheckRun | string;
  };
  NativeClient: {
    /** Makes a client, or a JSON description of why it cannot be made. */
    create(options: NativeClientOptions, callback?: Callback): NativeClient | string;
  };
  Cancellation: new (call?: number) => NativeCancellation;
  NativeValidator: {
    /** Makes a validator, or a JSON description of why it cannot be made. */
    create(options: NativeValidatorOptions): NativeValidator | string;
  };
  /** JSON of the failure, if it is one. Headers are flat pairs. */
  verifyWebhook(body: Uint8Array, headers: string[], secrets?: string[]): string | null;
  /** JSON of the failure, if it is one. */
  checkWebhook(body: Uint8Array): string | null;
  /** Runs the `gatewright` program with the arguments after its name; returns its exit code. */
  runProgram(args: string[]): number;
}

export interface NativeValidator {
  /** Largest document that is read, in bytes. */
  readonly maxBytes: number;
  /** The verdict. */
  validate(document: Uint8Array): NativeMade;
  /** As `validate`, on another thread. Never rejects. */
  judge(document: Uint8Array): Promise<NativeMade>;
  /** As `judge`, of a file. */
  judgeFile(path: string): Promise<NativeMade>;
  html(document: Uint8Array, evidence?: string, page?: string): NativeMade;
  junit(document: Uint8Array): NativeMade;
  annotations(document: Uint8Array): NativeMade;
  canonical(document: Uint8Array): NativeMade;
  diff(old: Uint8Array, now: Uint8Array, percent: number, ms: number, asHtml: boolean): NativeMade;
}

/** Text made of a document, or the JSON of the outcome of judging it, or of the failure. */
export interface NativeMade {
  readonly error?: string;
  readonly text?: string;
  readonly verdict?: string;
  /** Why there is no text, on one line. */
  readonly summary?: string;
}

export interface NativeValidatorOptions {
  strict?: boolean;
  models?: string[];
  kitName?: string;
  maxBytes?: number;
  maxFindings?: number;
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
