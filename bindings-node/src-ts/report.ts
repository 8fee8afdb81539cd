/** Compatibility reports (specification 2.12): is a document one, and if not, why; pages and comparisons of them. */

import { closeSync, createReadStream, openSync, readSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Transform } from "node:stream";

import { CallSite, failure } from "./failure";
import { FileError, InternalError } from "./generated/errors";
import { type NativeMade, type NativeValidator, type NativeValidatorOptions, native } from "./native";
import { isBlank, lineTransform, NEWLINE } from "./report-lines";

export type { JudgedLine } from "./report-lines";

/** Documents judged at a time and ahead of the results that were taken, per core. */
const AHEAD_PER_CORE = 8;
/** Bytes of a file that are read at a time. */
const CHUNK_BYTES = 1 << 20;
/** Most documents judged at a time. */
const MAX_AHEAD = 256;

/** One rule a document breaks, or one thing worth knowing about it. */
export interface Violation {
  /**
   * JSON Pointer of the value at fault; of the object, where a property is missing or unknown. One of more than 256 code
   * points is cut and ends in `…`; so is `property`.
   */
  readonly pointer: string;
  /** Line of the value in the input, from 1. */
  readonly line: number;
  /** Column of the value in its line, in code points, from 1. */
  readonly column: number;
  /**
   * The JSON Schema keyword, or why the document cannot be read: `size`, `empty`, `encoding`, `syntax`, `number`,
   * `duplicate_key`, `depth`, `trailing`.
   */
  readonly rule: string;
  /** The property that is missing, unknown or repeated. */
  readonly property: string | null;
  /** What should stand there, in words. */
  readonly expected: string | null;
  /** What stands there: the document's own text, cut to 64 characters. */
  readonly found: string | null;
  /** One line for people: place, what is wrong, section. */
  readonly message: string;
  /** Section of the specification the rule comes from; `ours` for a rule it does not state. */
  readonly section: string;
}

/** What the validator says of a document. */
export interface ValidationOutcome {
  readonly valid: boolean;
  /** In document order: the first 1000, or `maxFindings`. */
  readonly violations: readonly Violation[];
  /** Not against any rule, yet suspicious; with `strict` they make a document invalid. As many at most. */
  readonly advisories: readonly Violation[];
  /** Violations that were counted and are not listed. */
  readonly more_violations: number;
  /** Advisories that were counted and are not listed. */
  readonly more_advisories: number;
}

export interface ValidateOptions {
  /** Whether advisories count. Default: `false`. */
  strict?: boolean | undefined;
  /** Model ids a deployment tests, in place of the standard ones. */
  models?: readonly string[] | undefined;
  /** Name of a deployment's kit, in place of the standard one. */
  kitName?: string | undefined;
  /** Largest document to read, in bytes, below 4 GiB. Default: 16 MiB. */
  maxBytes?: number | undefined;
  /**
   * Most violations, and most advisories, that an outcome lists, 1 to 100,000; the rest is counted. Default: 1000.
   */
  maxFindings?: number | undefined;
}

/**
 * A document: its bytes, its text, or the file that holds it. A string is text where one document is taken, and a path
 * in `validateMany`.
 */
export type ReportSource = Uint8Array | string | { readonly path: string } | { readonly text: string };

/** One result of `validateMany`: a verdict, or why there is none, which is that the file could not be read. */
export interface Judged {
  /** How many items came before this one. */
  readonly position: number;
  /** The document as it was given. */
  readonly source: ReportSource;
  readonly outcome?: ValidationOutcome;
  /** An `InternalError` is a defect of Gatewright. */
  readonly error?: FileError | InternalError;
}

export interface ManyOptions {
  /** Whether results come in the order of the documents, or as they are ready. Default: `false`. */
  ordered?: boolean | undefined;
}

export interface PageOptions {
  /** Folder with the evidence that the check kit wrote: shown in the cells, and linked. */
  evidence?: string | undefined;
  /** Where the page will be written, from which the links lead. Default: the working folder. */
  page?: string | undefined;
}

export interface DiffOptions {
  /** Slower is longer by more than this, in percent of the old time, and … Default: 50. */
  slowerPercent?: number | undefined;
  /** … by more than this, in milliseconds. Default: 200. */
  slowerMs?: number | undefined;
}

/** A cell of two reports: a check on a model, or on none. */
export interface ComparedCell {
  readonly id: string;
  readonly model: string | null;
}

/** A cell whose result changed. */
export interface Turn extends ComparedCell {
  readonly old: "pass" | "fail" | "skip";
  readonly new: "pass" | "fail" | "skip";
  /** Why the new result is no pass, or the old one was none. */
  readonly explanation: string | null;
}

/** A cell that says something else. */
export interface Reworded extends ComparedCell {
  readonly old: string;
  readonly new: string;
}

/** A cell that took another time. */
export interface Timing extends ComparedCell {
  readonly old_ms: number;
  readonly new_ms: number;
}

/** One of two reports. */
export interface Side {
  readonly endpoint: string;
  readonly generated_at: string;
  readonly overall_status: "pass" | "fail";
}

/** What changed from one report to another. A cell that a report does not have counts as skipped. */
export interface Comparison {
  readonly old: Side;
  readonly new: Side;
  /** What was set otherwise, by JSON Pointer. */
  readonly settings: readonly { readonly pointer: string; readonly old: unknown; readonly new: unknown }[];
  readonly better: readonly Turn[];
  readonly worse: readonly Turn[];
  /** Failed, and was not run now. */
  readonly hidden: readonly Turn[];
  /** Fails in both, for different reasons. */
  readonly fails_otherwise: readonly Reworded[];
  readonly slower: readonly Timing[];
  readonly faster: readonly Timing[];
  /** Another model says that it answered. */
  readonly other_model: readonly Reworded[];
  readonly thresholds: { readonly percent: number; readonly ms: number };
}

/** A document of which something was to be made is no valid report. */
export class InvalidReport extends Error {
  /** What is wrong with it. */
  readonly outcome: ValidationOutcome;

  constructor(message: string, outcome: ValidationOutcome) {
    super(message);
    Object.defineProperty(this, "name", { value: "InvalidReport", configurable: true, writable: true });
    this.outcome = outcome;
  }
}

/** Judges reports by one set of options. Making one compiles the schema, so keep it for many documents. */
export class Validator {
  readonly #native: NativeValidator;

  constructor(options: ValidateOptions = {}) {
    const settings: NativeValidatorOptions = {};
    if (options.strict !== undefined) settings.strict = options.strict;
    if (options.models !== undefined) settings.models = [...options.models];
    if (options.kitName !== undefined) settings.kitName = options.kitName;
    if (options.maxBytes !== undefined) settings.maxBytes = options.maxBytes;
    if (options.maxFindings !== undefined) settings.maxFindings = options.maxFindings;
    const made = native.NativeValidator.create(settings);
    if (typeof made === "string") throw failure(made, new CallSite(Validator));
    this.#native = made;
  }

  /**
   * Validates a report. A document that cannot be read as JSON is invalid, not an error.
   *
   * Errors: those of the file system, if a path is given.
   */
  validate(source: ReportSource): ValidationOutcome {
    return this.#judge(isPath(source) ? readBounded(source.path, this.#native.maxBytes) : bytesOf(source));
  }

  /** As `validate`, of a file that is read without blocking. */
  async validateFile(path: string): Promise<ValidationOutcome> {
    const chunks: Buffer[] = [];
    // One byte over the bound is enough to be refused.
    for await (const chunk of createReadStream(path, { end: this.#native.maxBytes }))
      chunks.push(chunk as Buffer);
    return this.#judge(Buffer.concat(chunks));
  }

  /**
   * Validates documents on other threads, and gives the results as they come. A string is a path, and bytes are a
   * document; its text is given as `{ text }`.
   *
   * At most 8 documents per core are taken ahead of the results that were taken. A file that cannot be read is a
   * result with an `error`; an error of the iterable itself is thrown.
   */
  async *validateMany(
    sources: Iterable<ReportSource> | AsyncIterable<ReportSource>,
    options: ManyOptions = {},
  ): AsyncGenerator<Judged, void, undefined> {
    if (typeof sources === "string" || sources instanceof Uint8Array) {
      throw new TypeError("validateMany: it takes an iterable of documents, not one");
    }
    const pending = new Map<number, Promise<Judged>>();
    const next = async (): Promise<Judged> => {
      const [oldest] = pending.values();
      const judged = await (options.ordered === true ? oldest : Promise.race(pending.values()));
      pending.delete((judged as Judged).position);
      return judged as Judged;
    };
    let position = 0;
    for await (const source of sources) {
      if (!isBlankLine(source)) pending.set(position, this.#judged(position, source));
      position += 1;
      if (pending.size >= readAhead()) yield await next();
    }
    while (pending.size > 0) yield await next();
  }

  /**
   * A stream that takes the bytes of NDJSON (one document per line) and gives a `JudgedLine` for each line that is
   * not blank, in order. `Duplex.toWeb(validator.ndjson())` makes a web stream of it.
   *
   * Of a line over `maxBytes`, no more than that is held.
   */
  ndjson(): Transform {
    return lineTransform({
      maxBytes: this.#native.maxBytes,
      ahead: readAhead(),
      judge: async (line) => outcomeOf(await this.#native.judge(line)),
    });
  }

  /** The report as one HTML page that needs nothing else. Errors: `InvalidReport`, `FileError`. */
  html(source: ReportSource, options: PageOptions = {}): string {
    const document = this.#contentOf(source);
    return textOf(this.#native.html(document, options.evidence, options.page));
  }

  /** The report as JUnit XML, one suite per model. Errors: `InvalidReport`. */
  junit(source: ReportSource): string {
    return textOf(this.#native.junit(this.#contentOf(source)));
  }

  /** Workflow commands of GitHub Actions, one line per failed check. Errors: `InvalidReport`. */
  githubAnnotations(source: ReportSource): string {
    return textOf(this.#native.annotations(this.#contentOf(source)));
  }

  /**
   * The document in canonical form: members in the order of the schema, two spaces per level. It need not be a valid
   * report. Errors: `InvalidReport`, if it is no JSON.
   */
  canonical(source: ReportSource): string {
    return textOf(this.#native.canonical(this.#contentOf(source)));
  }

  /** What got better, worse or slower from one report to another. Errors: `InvalidReport`. */
  diff(old: ReportSource, now: ReportSource, options: DiffOptions = {}): Comparison {
    return JSON.parse(this.#diff(old, now, options, false)) as Comparison;
  }

  /** As `diff`, as one HTML page that needs nothing else. */
  diffHtml(old: ReportSource, now: ReportSource, options: DiffOptions = {}): string {
    return this.#diff(old, now, options, true);
  }

  #diff(old: ReportSource, now: ReportSource, options: DiffOptions, asHtml: boolean): string {
    const { slowerPercent = 50, slowerMs = 200 } = options;
    return textOf(
      this.#native.diff(this.#contentOf(old), this.#contentOf(now), slowerPercent, slowerMs, asHtml),
    );
  }

  #contentOf(source: ReportSource): Uint8Array {
    return contentOf(source, this.#native.maxBytes);
  }

  #judge(document: Uint8Array): ValidationOutcome {
    return outcomeOf(this.#native.validate(document));
  }

  /** Never rejects: whoever breaks off leaves no rejection behind. */
  async #judged(position: number, source: ReportSource): Promise<Judged> {
    try {
      const place = typeof source === "string" ? { path: source } : source;
      const judging = isPath(place) ? this.#native.judgeFile(place.path) : this.#native.judge(bytesOf(place));
      return { position, source, outcome: outcomeOf(await judging) };
    } catch (error) {
      return { position, source, error: error instanceof InternalError ? error : fileError(error) };
    }
  }
}

let standard: Validator | undefined;

/** Validates a report, as `Validator.validate` does. */
export function validate(source: ReportSource, options?: ValidateOptions): ValidationOutcome {
  return validator(options).validate(source);
}

/** Validates a report in a file, as `Validator.validateFile` does. */
export function validateFile(path: string, options?: ValidateOptions): Promise<ValidationOutcome> {
  return validator(options).validateFile(path);
}

/** Validates documents, as `Validator.validateMany` does. */
export function validateMany(
  sources: Iterable<ReportSource> | AsyncIterable<ReportSource>,
  options: ValidateOptions & ManyOptions = {},
): AsyncGenerator<Judged, void, undefined> {
  const { ordered, ...rest } = options;
  const given = Object.values(rest).some((option) => option !== undefined);
  return validator(given ? rest : undefined).validateMany(sources, { ordered });
}

/** A stream from NDJSON to verdicts, as `Validator.ndjson` makes it. */
export function ndjson(options?: ValidateOptions): Transform {
  return validator(options).ndjson();
}

/** The report as one HTML page, as `Validator.html` makes it. */
export function html(source: ReportSource, options?: PageOptions): string {
  return validator(undefined).html(source, options);
}

/** The report as JUnit XML, as `Validator.junit` makes it. */
export function junit(source: ReportSource): string {
  return validator(undefined).junit(source);
}

/** Workflow commands of GitHub Actions, as `Validator.githubAnnotations` makes them. */
export function githubAnnotations(source: ReportSource): string {
  return validator(undefined).githubAnnotations(source);
}

/** The canonical form, as `Validator.canonical` makes it. */
export function canonical(source: ReportSource): string {
  return validator(undefined).canonical(source);
}

/** What changed from one report to another, as `Validator.diff` tells it. */
export function diff(old: ReportSource, now: ReportSource, options?: DiffOptions): Comparison {
  return validator(undefined).diff(old, now, options);
}

/** As `diff`, as one HTML page. */
export function diffHtml(old: ReportSource, now: ReportSource, options?: DiffOptions): string {
  return validator(undefined).diffHtml(old, now, options);
}

function validator(options: ValidateOptions | undefined): Validator {
  if (options !== undefined) return new Validator(options);
  standard ??= new Validator();
  return standard;
}

function isPath(source: ReportSource): source is { readonly path: string } {
  return typeof source === "object" && "path" in source;
}

function bytesOf(document: Exclude<ReportSource, { readonly path: string }>): Uint8Array {
  if (document instanceof Uint8Array) return document;
  return Buffer.from(typeof document === "string" ? document : document.text, "utf8");
}

/** Whether it is a line of a file with nothing in it. Nothing at all is an empty document. */
function isBlankLine(source: ReportSource): boolean {
  return source instanceof Uint8Array && source.at(-1) === NEWLINE && source.every(isBlank);
}

/** The bytes of a file; of one over the bound just enough to be refused. */
function readBounded(path: string, most: number): Buffer {
  const file = openSync(path, "r");
  try {
    const chunks: Buffer[] = [];
    for (let room = most + 1; room > 0; ) {
      const chunk = Buffer.allocUnsafe(Math.min(room, CHUNK_BYTES));
      const length = fill(chunk, file);
      chunks.push(chunk.subarray(0, length));
      if (length < chunk.length) break;
      room -= length;
    }
    return Buffer.concat(chunks);
  } finally {
    closeSync(file);
  }
}

/** Reads until the chunk is full or the file ends: a pipe gives little at a time. Gives how much there was. */
function fill(chunk: Buffer, file: number): number {
  let filled = 0;
  while (filled < chunk.length) {
    const length = readSync(file, chunk, filled, chunk.length - filled, null);
    if (length === 0) break;
    filled += length;
  }
  return filled;
}

function contentOf(source: ReportSource, most: number): Uint8Array {
  if (!isPath(source)) return bytesOf(source);
  try {
    return readBounded(source.path, most);
  } catch (error) {
    throw fileError(error);
  }
}

function outcomeOf({ error, verdict }: NativeMade): ValidationOutcome {
  if (error !== undefined) throw failure(error, new CallSite(outcomeOf));
  return JSON.parse(verdict ?? "") as ValidationOutcome;
}

function textOf(made: NativeMade): string {
  if (made.text === undefined) throw new InvalidReport(made.summary ?? "", outcomeOf(made));
  return made.text;
}

function fileError(error: unknown): FileError {
  if (error instanceof FileError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new FileError({ kind: "io", message, cause: error });
}

function readAhead(): number {
  return Math.min(AHEAD_PER_CORE * availableParallelism(), MAX_AHEAD);
}
