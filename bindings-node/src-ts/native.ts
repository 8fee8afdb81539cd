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

/** A run of the check kit, on its own threads. */
export interface NativeCheckRun {
  /** The next event as JSON, if one comes within a second. */
  next(): Promise<{ readonly done: boolean; readonly event?: string }>;
  cancel(): void;
  /** Report and evidence as JSON, once the run is done. */
  outcome(): { readonly report: string; readonly evidence: string; readonly interrupted: boolean };
  writeReport(path: string): Promise<void>;
  writeEvidence(folder: string): Promise<string[]>;
}

export interface NativeModule {
  NativeCheckRun: {
    /** Begins a run, or tells why the kit refuses. */
    create(options: string, apiKey: string): NativeCheckRun | string;
  };
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
  /** As `validate`, on another thread. */
  judge(document: Uint8Array): Promise<string>;
  /** As `judge`, of a file. Rejects if it cannot be read. */
  judgeFile(path: string): Promise<string>;
  html(document: Uint8Array, evidence?: string, page?: string): NativeMade;
  junit(document: Uint8Array): NativeMade;
  annotations(document: Uint8Array): NativeMade;
  canonical(document: Uint8Array): NativeMade;
  diff(old: Uint8Array, now: Uint8Array, percent: number, ms: number, asHtml: boolean): NativeMade;
}

/** Text made of a document, or the JSON of the outcome that says why there is none. */
export interface NativeMade {
  readonly text?: string;
  readonly verdict?: string;
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
