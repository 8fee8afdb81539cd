/** Finds and types the engine, the compiled module; everything else in the package reaches it through here. */

import { existsSync } from "node:fs";
import { join } from "node:path";

import type { Callback } from "./callbacks";
import type {
  EngineClientOptions,
  EngineRequestOptions,
  EngineSaveOptions,
  EngineWaitOptions,
} from "./generated/options";
import { engineFile, platformName } from "./platform";

/** A complete response. */
export interface EngineResponse {
  readonly status: number;
  /** JSON: an array of `[name, value]`. */
  readonly headers: string;
  readonly requestId?: string;
  /** Attempts made, the successful one included. */
  readonly attempts: number;
  readonly elapsedMs: number;
}

/** Either a response or a failure: the engine never rejects. */
export interface EngineAnswer extends Partial<EngineResponse> {
  /** JSON of the failure, see `failure.ts`. */
  readonly error?: string;
  readonly body?: string;
  /** The body of a response that is not text. */
  readonly bytes?: Uint8Array;
  readonly stream?: EngineStream;
}

/** What a stream returns per call: all events that are ready, or how it ended. */
export interface EngineBatch {
  /** In order. If there are neither documents nor an error, the stream is complete. */
  readonly documents?: string[];
  readonly error?: string;
}

export interface EngineStream {
  /** Events, each a JSON document. */
  nextBatch(): Promise<EngineBatch>;
  /** Frames as they arrived, each a JSON object; see `RawEvent`. */
  nextFrames(): Promise<EngineBatch>;
  /** The new text. */
  nextText(): Promise<EngineBatch>;
  /** Reads to the end; the body is the document that all events add up to. */
  finish(): Promise<EngineAnswer>;
  /** Closes the connection at once; a waiting reader gets the end of the stream. */
  close(): void;
  /** Like `close`, but the waiting or next reader gets an error. */
  cancel(): void;
}

/** One call in the engine's format. Lists of pairs are flat: name, value, name, value. */
export interface EngineCall {
  operation: string;
  path: string[];
  query: string[];
  headers: string[];
  /** JSON document. */
  body?: string;
  options?: EngineRequestOptions;
}

export interface EngineWait {
  taskId: string;
  /** Whether the gateway has just accepted the task. */
  submitted: boolean;
  options: EngineWaitOptions;
}

/** A wait for a video task. */
export interface EngineWatch {
  /** Whether the task was completed at the latest poll. */
  readonly completed: boolean;
  /** The task at the next poll. */
  next(cancellation?: EngineCancellation): Promise<EngineAnswer>;
}

/** What to save, and where. */
export interface EngineSaving {
  kind: "image" | "video";
  /** JSON of the record. */
  record: string;
  path: string;
  options: EngineSaveOptions;
}

export interface EngineClient {
  readonly baseUrl: string;
  /** A client over the same connections, or a JSON description of why it cannot be made. */
  withOptions(options: EngineRequestOptions): EngineClient | string;
  call(call: EngineCall, cancellation?: EngineCancellation): Promise<EngineAnswer>;
  open(call: EngineCall, cancellation?: EngineCancellation): Promise<EngineAnswer>;
  /** A wait, or a JSON description of why it cannot begin. */
  watchVideo(wait: EngineWait): EngineWatch | string;
  /** The answer's body is the size of the file. */
  save(saving: EngineSaving, cancellation?: EngineCancellation): Promise<EngineAnswer>;
}

/** Cancels the request it was passed to, and identifies the call to its callbacks. */
export interface EngineCancellation {
  cancel(): void;
}

/** A run of the check kit, on its own threads. */
export interface EngineCheckRun {
  /** The next event as JSON, if one arrives within a second. */
  next(): Promise<{ readonly error?: string; readonly done: boolean; readonly event?: string }>;
  cancel(): void;
  /** Report and evidence as JSON, once the run is done, or JSON of the failure. */
  result(): { readonly report: string; readonly evidence: string; readonly interrupted: boolean } | string;
  writeReport(path: string): Promise<EngineWritten>;
  writeEvidence(folder: string): Promise<EngineWritten>;
}

/** The result of writing. */
export interface EngineWritten {
  /** JSON of the failure. */
  readonly error?: string;
  readonly names: string[];
}

export interface EngineModule {
  EngineCheckRun: {
    /** Starts a run, or returns a JSON description of why the kit refuses. */
    create(options: string, apiKey: string): EngineCheckRun | string;
  };
  EngineClient: {
    /** Creates a client, or returns a JSON description of why that fails. */
    create(options: EngineClientOptions, callback?: Callback): EngineClient | string;
  };
  Cancellation: new (call?: number) => EngineCancellation;
  EngineValidator: {
    /** Creates a validator, or returns a JSON description of why that fails. */
    create(options: EngineValidatorOptions): EngineValidator | string;
  };
  EnginePool: {
    /** Starts threads, or returns a JSON description of why that fails. */
    create(validator: EngineValidator, ordered: boolean): EnginePool | string;
  };
  EngineLines: new () => EngineLines;
  /** Whether bytes are a blank line. */
  isBlankLine(line: Uint8Array): boolean;
  /** Whether a header is one of the signature headers of a webhook. */
  isWebhookHeader(name: string): boolean;
  /**
   * JSON of the failure, if it fails. Headers are flat pairs. `secrets`: those passed by the caller, or the text of the
   * environment variable.
   */
  verifyWebhook(body: Uint8Array, headers: string[], secrets: readonly string[] | string): string | null;
  /** JSON of the failure, if it fails. */
  checkWebhook(body: Uint8Array): string | null;
  /** Runs the `gatewright` program with the arguments after its name; returns its exit code, or JSON of the failure. */
  runProgram(args: string[]): number | string;
}

export interface EngineValidator {
  /** The document in a file, as much of it as is needed. */
  read(path: string): EngineDocument;
  /** Like `read`, without blocking. Never rejects. */
  readLater(path: string): Promise<EngineDocument>;
  /** The verdict. */
  validate(document: Uint8Array): EngineMade;
  html(document: Uint8Array, evidence?: string, page?: string): EngineMade;
  junit(document: Uint8Array): EngineMade;
  annotations(document: Uint8Array): EngineMade;
  canonical(document: Uint8Array): EngineMade;
  diff(
    old: Uint8Array,
    now: Uint8Array,
    percent: number | undefined,
    ms: number | undefined,
    asHtml: boolean,
  ): EngineMade;
}

/** Threads that validate documents, or the lines of incremental input. */
export interface EnginePool {
  /** Submits a document or the path of one; returns whether there is room for another before a result is fetched. */
  submit(number: number, document: Uint8Array | string): boolean;
  /** Adds the next bytes of lines. */
  feed(bytes: Uint8Array): void;
  /**
   * Submits complete lines, and the last one at the end of the input; returns whether there was room for all of them.
   */
  advance(ended: boolean): boolean;
  /** The next result, with the number of its document or line; without a number if none is pending. Never rejects. */
  fetch(): Promise<{ readonly error?: string; readonly number?: number; readonly made?: EngineMade }>;
  /** Ends the threads. */
  close(): void;
}

/** Splits bytes into non-blank lines. */
export interface EngineLines {
  /** Maximum length of a line, in bytes. */
  readonly maxBytes: number;
  /** The lines that end within the next bytes; null if one is too long. */
  take(bytes: Uint8Array): string[] | null;
  /** The last line, if no line break ends it. */
  finish(): string[];
}

/** The bytes of a document, or the JSON of the failure. */
export interface EngineDocument {
  readonly error?: string;
  readonly bytes?: Uint8Array;
}

/** Text made from a document, or the JSON of its validation outcome or of the failure. */
export interface EngineMade {
  readonly error?: string;
  readonly text?: string;
  readonly verdict?: string;
  /** Why there is no text, on one line. */
  readonly summary?: string;
}

export interface EngineValidatorOptions {
  strict?: boolean;
  models?: string[];
  kitName?: string;
  maxBytes?: number;
  maxFindings?: number;
}

function load(): EngineModule {
  const path = join(__dirname, "..", engineFile());
  if (!existsSync(path)) {
    throw new Error(
      `gatewright: no compiled module for this platform (${platformName()}, Node ${process.version}): ${path} does not exist. ` +
        "Install the package on the platform it runs on, or build it there from source.",
    );
  }
  return require(path) as EngineModule;
}

export const engine: EngineModule = load();
