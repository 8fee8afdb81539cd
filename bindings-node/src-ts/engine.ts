/** Types the engine, the compiled module; everything else in the package reaches it through here. */

import type { Callback } from "./callbacks";
import type {
  EngineClientOptions,
  EngineRequestOptions,
  EngineSaveOptions,
  EngineWaitOptions,
} from "./generated/options";
import { loadEngine } from "./loading";

/** A complete response. */
export interface EngineResponse {
  readonly status: number;
  /** JSON: an array of `[name, value]`. */
  readonly headers: string;
  readonly requestId: string | null;
  /** Number of attempts, including the successful one. */
  readonly attempts: number;
  readonly elapsedMs: number;
}

/** The result of work: a failure, a response, or what a stream has brought; at its end, none of them. */
export interface EngineAnswer {
  /** JSON of the failure, see `failure.ts`. */
  readonly error: string | null;
  /** Text, texts, or the body of a response that is not text. */
  readonly content: string | string[] | Uint8Array | null;
  readonly stream: EngineStream | null;
  readonly status: number | null;
  readonly headers: string | null;
  readonly requestId: string | null;
  readonly attempts: number | null;
  readonly elapsedMs: number | null;
}

/** The function that gets all results, each with the number of its work; see `deliveries.ts`. */
export type Deliver = (
  number: number,
  error: EngineAnswer["error"],
  content: EngineAnswer["content"],
  stream: EngineAnswer["stream"],
  status: EngineAnswer["status"],
  headers: EngineAnswer["headers"],
  requestId: EngineAnswer["requestId"],
  attempts: EngineAnswer["attempts"],
  elapsedMs: EngineAnswer["elapsedMs"],
) => void;

/** The way of results to `deliveries.ts`. */
export interface EngineDeliveries {
  readonly [way: symbol]: never;
}

/** At which level a stream is read; the numbers are the engine's. */
export const Level = {
  /** Events, as one JSON array of rows; see `rows.ts`. */
  events: 0,
  /** Events, each a JSON document. */
  documents: 1,
  /** Frames as they arrived, as one JSON array; see `RawEvent`. */
  frames: 2,
  /** The new text, as one JSON array of strings. */
  text: 3,
} as const;
export type Level = (typeof Level)[keyof typeof Level];

export interface EngineStream {
  /** All events that are ready, once there is one; nothing at the end. One at a time, and all at one level. */
  next(number: number, level: Level): void;
  /** Reads to the end; the content is the document that all events add up to. */
  finish(number: number): void;
  /** Closes the connection at once; a waiting reader gets the end of the stream. */
  close(): void;
  /** Like `close`, but the waiting or next reader gets an error. */
  cancel(): void;
}

/** One call in the engine's format. Lists of pairs are flat: name, value, name, value. */
export interface EngineCall {
  operation: string;
  path?: string[];
  query?: string[];
  headers?: string[];
  /** JSON document. */
  body?: string;
  files?: EngineFile[];
  options?: EngineRequestOptions;
}

/** A file of a form, and the member of the body that it is. */
export interface EngineFile {
  member: string;
  name: string;
  /** Media type. */
  type?: string;
  data: Uint8Array;
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
  next(number: number, cancellation?: EngineCancellation): void;
}

/** What to save, and where. */
export interface EngineSaving {
  kind: "image" | "video";
  /** JSON of the record, unless it is an image whose members are here. */
  record?: string;
  url?: string | undefined;
  b64Json?: string | undefined;
  path: string;
  options: EngineSaveOptions;
}

/** Results of its work come under the number that is passed with it. */
export interface EngineClient {
  readonly baseUrl: string;
  /** A client over the same connections, or a JSON description of why it cannot be made. */
  withOptions(options: EngineRequestOptions): EngineClient | string;
  call(number: number, call: EngineCall, cancellation?: EngineCancellation): void;
  open(number: number, call: EngineCall, cancellation?: EngineCancellation): void;
  /** A wait, or a JSON description of why it cannot begin. */
  watchVideo(wait: EngineWait): EngineWatch | string;
  /** The content is the size of the file. */
  save(number: number, saving: EngineSaving, cancellation?: EngineCancellation): void;
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
  /** Report, additional checks and evidence as JSON, once the run is done, or JSON of the failure. */
  result():
    | {
        readonly report: string;
        readonly protocols?: string;
        readonly evidence: string;
        readonly interrupted: boolean;
      }
    | string;
  writeReport(path: string): Promise<EngineWritten>;
  writeProtocols(path: string): Promise<EngineWritten>;
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
    create(
      options: EngineClientOptions,
      deliveries: EngineDeliveries,
      callback?: Callback,
    ): EngineClient | string;
  };
  EngineDeliveries: new (deliver: Deliver) => EngineDeliveries;
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
  /** Adds operations of another API, which a generated package does when it is loaded; returns what is wrong with the JSON. */
  registerOperations(json: string): string | null;
  /** Maximum length of a form, in bytes. */
  maxFormBytes(): number;
  /** The idempotency key of a later round of a loop; `round` is counted from 0. */
  keyOfRound(key: string, round: number): string;
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
  /**
   * Runs the `gatewright` program with the arguments after its name; returns its exit code, or JSON of the failure.
   * `folders`: where `gatewright-server` may be.
   */
  runProgram(args: string[], folders: string[]): number | string;
}

export interface EngineValidator {
  /** The document in a file, as much of it as is needed. */
  read(path: string): EngineDocument;
  /** Like `read`, without blocking. Never rejects. */
  readLater(path: string): Promise<EngineDocument>;
  /** The verdict; `null` if the document is clean. */
  validate(document: Uint8Array): EngineJudged | null;
  html(document: Uint8Array, evidence?: string, page?: string, protocols?: Uint8Array): EngineMade;
  junit(document: Uint8Array): EngineMade;
  sarif(document: Uint8Array, path: string): EngineMade;
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
  /**
   * The next result, with the number of its document or line, and nothing `made` if that is clean; without a number if
   * none is pending. Never rejects.
   */
  fetch(): Promise<{ readonly error?: string; readonly number?: number; readonly made?: EngineJudged }>;
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

/** The JSON of an `EngineVerdict`, or the failure. */
export type EngineJudged = string | EngineMade;

/** An outcome: its members in the order of their types, and those of each violation and advisory. */
export type EngineVerdict = [
  valid: boolean,
  violations: EngineFinding[],
  advisories: EngineFinding[],
  moreViolations: number,
  moreAdvisories: number,
];

export type EngineFinding = [
  pointer: string,
  line: number,
  column: number,
  rule: string,
  property: string | null,
  expected: string | null,
  found: string | null,
  message: string,
  section: string,
];

/** Text made from a document, or the JSON of an `EngineVerdict` or of the failure. */
export interface EngineMade {
  readonly error?: string;
  readonly text?: string;
  readonly verdict?: string;
  /** Why there is no text, on one line. */
  readonly summary?: string;
}

export interface EngineValidatorOptions {
  strict?: boolean;
  ownNames?: boolean;
  models?: string[];
  kitName?: string;
  maxBytes?: number;
  maxFindings?: number;
}

export const engine = loadEngine() as EngineModule;
