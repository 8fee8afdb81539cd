/** Compatibility reports: validation, pages and comparisons. Source: section 2.12 of the specification. */

import type { Transform } from "node:stream";
import type { ProtocolReport } from "./check";
import { type EngineDocument, type EngineValidator, type EngineValidatorOptions, engine } from "./engine";
import { CallSite, failure } from "./failure";
import { FileError, InternalError } from "./generated/errors";
import type { Report } from "./generated/report";
import type { Comparison, DiffOptions } from "./report-comparison";
import { judgedLines } from "./report-lines";
import { outcomeOf, textOf, type ValidationOutcome } from "./report-outcome";
import { ReportPool } from "./report-pool";

export type * from "./generated/report";
export type * from "./report-comparison";
export type { JudgedLine } from "./report-lines";
export { InvalidReport, type ValidationOutcome, type Violation } from "./report-outcome";

/** How documents are validated. */
export interface ValidateOptions {
  /** Whether advisories make a document invalid. Default: `false`. */
  strict?: boolean | undefined;
  /**
   * Whether a report may declare its own kit name and models, instead of the standard ones. Ignored if
   * `models` or `kitName` is given. Default: `false`.
   */
  ownNames?: boolean | undefined;
  /** Ids of the models that a deployment tests, instead of the standard ones. */
  models?: readonly string[] | undefined;
  /** Name of a deployment's kit, instead of the standard one. */
  kitName?: string | undefined;
  /** Maximum size of a document, in bytes, below 4 GiB. Default: 16 MiB. */
  maxBytes?: number | undefined;
  /**
   * Maximum number of violations, and of advisories, that an outcome lists: 1 to 100,000; further ones are
   * only counted. Default: 1000.
   */
  maxFindings?: number | undefined;
}

/**
 * A document: bytes, text, a file, or an object such as the `report` or the `protocols` of a `CheckResult`. A
 * string is text in functions that take one document, and a path in `validateMany`.
 */
export type ReportSource =
  | Uint8Array
  | string
  | { readonly path: string }
  | { readonly text: string }
  | Report
  | ProtocolReport;

/** One result of `validateMany`: a verdict, or the error for a file that could not be read. */
export interface Judged {
  /** Number of items before this one. */
  readonly position: number;
  /** The document as it was passed. */
  readonly source: ReportSource;
  /** The verdict; absent if the document could not be read. */
  readonly outcome?: ValidationOutcome;
  /** An `InternalError` is a defect of Gatewright. */
  readonly error?: FileError | InternalError;
}

/** How many documents are judged. */
export interface ManyOptions {
  /**
   * Whether to yield results in the order of the documents, or as soon as they are ready. Default: `false`.
   */
  ordered?: boolean | undefined;
}

/** What the page of a report shows. */
export interface PageOptions {
  /** Folder with the check kit's evidence, which the page shows in the cells and links to. */
  evidence?: string | undefined;
  /** The file to which the page will be written; links are relative to it. Default: the working folder. */
  page?: string | undefined;
  /** Additional checks of the same run, for a section of the report's page. */
  protocols?: ReportSource | undefined;
}

/** How a SARIF log refers to the report. */
export interface SarifOptions {
  /**
   * The file of the report, absolute or relative to the root of the sources. Default: the path that is passed,
   * else `report.json`.
   */
  path?: string | undefined;
}

/**
 * Validates reports with one set of options. Creating one compiles the schema, so reuse it for many
 * documents.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * const validator = new report.Validator({ strict: true, maxFindings: 10 });
 * console.log(validator.validate({ path: "runs/good.json" }).valid);
 * ```
 */
export class Validator {
  readonly #engine: EngineValidator;

  constructor(options: ValidateOptions = {}) {
    const settings: EngineValidatorOptions = {};
    if (options.strict !== undefined) settings.strict = options.strict;
    if (options.ownNames !== undefined) settings.ownNames = options.ownNames;
    if (options.models !== undefined) settings.models = [...options.models];
    if (options.kitName !== undefined) settings.kitName = options.kitName;
    if (options.maxBytes !== undefined) settings.maxBytes = options.maxBytes;
    if (options.maxFindings !== undefined) settings.maxFindings = options.maxFindings;
    const made = engine.EngineValidator.create(settings);
    if (typeof made === "string") throw failure(made, new CallSite(Validator));
    this.#engine = made;
  }

  /**
   * Validates a report. A document that cannot be read as JSON is invalid, not an error.
   *
   * Errors: `FileError`, if a path is given and the file cannot be read.
   */
  validate(source: ReportSource): ValidationOutcome {
    return this.#judge(this.#contentOf(source));
  }

  /** Like `validate`, for a file that is read without blocking. */
  async validateFile(path: string): Promise<ValidationOutcome> {
    return this.#judge(documentOf(await this.#engine.readLater(path)));
  }

  /**
   * Validates documents on other threads, and yields the results as they arrive. A string is a path, and bytes are a
   * document; pass its text as `{ text }`.
   *
   * Takes at most 8 documents per core ahead of the results. A file that cannot be read yields a result with an
   * `error`; an error of the iterable itself is thrown.
   */
  async *validateMany(
    sources: Iterable<ReportSource> | AsyncIterable<ReportSource>,
    options: ManyOptions = {},
  ): AsyncGenerator<Judged, void, undefined> {
    if (typeof sources === "string" || sources instanceof Uint8Array) {
      throw new TypeError(
        "validateMany: expected an iterable of documents, not a single one: validate and validateFile take one",
      );
    }
    const pool = new ReportPool(this.#engine, options.ordered === true);
    const given = new Map<number, ReportSource>();
    const next = async (): Promise<Judged | undefined> => {
      const fetched = await pool.fetch();
      if (fetched === undefined) return undefined;
      const position = fetched.number;
      const source = given.get(position) as ReportSource;
      given.delete(position);
      return judged(position, source, () => outcomeOf(fetched.made));
    };
    try {
      let position = -1;
      for await (const source of sources) {
        position += 1;
        if (source instanceof Uint8Array && engine.isBlankLine(source)) continue;
        let room = true;
        try {
          room = pool.submit(position, typeof source === "string" ? source : placeOrBytes(source));
          given.set(position, source);
        } catch (error) {
          yield { position, source, error: fileError(error) };
        }
        if (!room) yield (await next()) as Judged;
      }
      for (let one = await next(); one !== undefined; one = await next()) yield one;
    } finally {
      pool.close();
    }
  }

  /**
   * A stream that takes the bytes of NDJSON (one document per line) and yields a `JudgedLine` for each non-blank line,
   * in order. `Duplex.toWeb(validator.ndjson())` converts it to a web stream.
   *
   * Buffers no more than `maxBytes` of a line.
   */
  ndjson(): Transform {
    return judgedLines(new ReportPool(this.#engine, true), outcomeOf);
  }

  /** The report, or the additional checks, as one self-contained HTML page. Errors: `InvalidReport`, `FileError`. */
  html(source: ReportSource, { evidence, page, protocols }: PageOptions = {}): string {
    const document = this.#contentOf(source);
    const checks = protocols === undefined ? undefined : this.#contentOf(protocols);
    return textOf(this.#engine.html(document, evidence, page, checks));
  }

  /** The report as JUnit XML, one suite per model. Errors: `InvalidReport`. */
  junit(source: ReportSource): string {
    return textOf(this.#engine.junit(this.#contentOf(source)));
  }

  /**
   * The failed checks as a SARIF log, for code scanning: one result each, at its line of the document. Errors:
   * `InvalidReport`.
   */
  sarif(source: ReportSource, { path }: SarifOptions = {}): string {
    const passed = isPath(source) ? source.path : undefined;
    return textOf(this.#engine.sarif(this.#contentOf(source), path ?? passed ?? "report.json"));
  }

  /**
   * Workflow commands of GitHub Actions, one line per failed check of a report or of additional checks. Errors:
   * `InvalidReport`.
   */
  githubAnnotations(source: ReportSource): string {
    return textOf(this.#engine.annotations(this.#contentOf(source)));
  }

  /**
   * The document in canonical form: members in the order of the schema, two spaces per level. The document
   * doesn't have to be a valid report. Errors: `InvalidReport`, if it is not JSON.
   */
  canonical(source: ReportSource): string {
    return textOf(this.#engine.canonical(this.#contentOf(source)));
  }

  /** The changes from one report to another: what got better, worse or slower. Errors: `InvalidReport`. */
  diff(old: ReportSource, now: ReportSource, options: DiffOptions = {}): Comparison {
    return JSON.parse(this.#diff(old, now, options, false)) as Comparison;
  }

  /** Like `diff`, but returns one self-contained HTML page. */
  diffHtml(old: ReportSource, now: ReportSource, options: DiffOptions = {}): string {
    return this.#diff(old, now, options, true);
  }

  #diff(old: ReportSource, now: ReportSource, options: DiffOptions, asHtml: boolean): string {
    const { slowerPercent, slowerMs } = options;
    return textOf(
      this.#engine.diff(this.#contentOf(old), this.#contentOf(now), slowerPercent, slowerMs, asHtml),
    );
  }

  #contentOf(source: ReportSource): Uint8Array {
    // Most documents are bytes.
    if (source instanceof Uint8Array) return source;
    return isPath(source) ? documentOf(this.#engine.read(source.path)) : bytesOf(source);
  }

  #judge(document: Uint8Array): ValidationOutcome {
    return outcomeOf(this.#engine.validate(document));
  }
}

let standard: Validator | undefined;
let lenient: Validator | undefined;

/**
 * Validates a report, like `Validator.validate`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * console.log(report.validate({ path: "runs/good.json" }).valid);
 * ```
 */
export function validate(source: ReportSource, options?: ValidateOptions): ValidationOutcome {
  return validator(options).validate(source);
}

/**
 * Validates a report in a file, like `Validator.validateFile`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * const { violations } = await report.validateFile("runs/broken.json");
 * for (const { line, message } of violations) console.log(line, message);
 * ```
 */
export function validateFile(path: string, options?: ValidateOptions): Promise<ValidationOutcome> {
  return validator(options).validateFile(path);
}

/**
 * Validates documents, like `Validator.validateMany`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * for await (const { source, outcome } of report.validateMany(["runs/good.json", "runs/broken.json"], { ordered: true })) {
 *   console.log(source, outcome.valid);
 * }
 * ```
 */
export function validateMany(
  sources: Iterable<ReportSource> | AsyncIterable<ReportSource>,
  options: ValidateOptions & ManyOptions = {},
): AsyncGenerator<Judged, void, undefined> {
  const { ordered, ...rest } = options;
  const given = Object.values(rest).some((option) => option !== undefined);
  return validator(given ? rest : undefined).validateMany(sources, { ordered });
}

/**
 * A stream from NDJSON to verdicts, like `Validator.ndjson`.
 *
 * @example
 * ```js
 * import { createReadStream } from "node:fs";
 * import { report } from "gatewright";
 *
 * for await (const { line, outcome } of createReadStream("all.ndjson").pipe(report.ndjson())) {
 *   console.log(line, outcome.valid);
 * }
 * ```
 */
export function ndjson(options?: ValidateOptions): Transform {
  return validator(options).ndjson();
}

/**
 * The report as one HTML page, like `Validator.html`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * console.log(report.html({ path: "runs/good.json" }, { page: "report.html" }).length);
 * ```
 */
export function html(source: ReportSource, options?: PageOptions): string {
  return rendering().html(source, options);
}

/**
 * The report as JUnit XML, like `Validator.junit`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * console.log(report.junit({ path: "runs/good.json" }));
 * ```
 */
export function junit(source: ReportSource): string {
  return rendering().junit(source);
}

/**
 * The failed checks as a SARIF log, like `Validator.sarif`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * console.log(report.sarif({ path: "runs/good.json" }));
 * ```
 */
export function sarif(source: ReportSource, options?: SarifOptions): string {
  return rendering().sarif(source, options);
}

/**
 * Workflow commands of GitHub Actions, like `Validator.githubAnnotations`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * console.log(report.githubAnnotations({ path: "runs/good.json" }));
 * ```
 */
export function githubAnnotations(source: ReportSource): string {
  return rendering().githubAnnotations(source);
}

/**
 * The canonical form, like `Validator.canonical`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * console.log(report.canonical('{"kit": {}, "schema_version": "1.0"}'));
 * ```
 */
export function canonical(source: ReportSource): string {
  return rendering().canonical(source);
}

/**
 * The changes from one report to another, like `Validator.diff`.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * const good = { path: "runs/good.json" };
 * const { worse, slower } = report.diff(good, good, { slowerPercent: 20 });
 * console.log(worse.length, slower.length);
 * ```
 */
export function diff(old: ReportSource, now: ReportSource, options?: DiffOptions): Comparison {
  return rendering().diff(old, now, options);
}

/**
 * Like `diff`, but returns one HTML page.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * const good = { path: "runs/good.json" };
 * console.log(report.diffHtml(good, good).length);
 * ```
 */
export function diffHtml(old: ReportSource, now: ReportSource, options?: DiffOptions): string {
  return rendering().diffHtml(old, now, options);
}

/** For documents that are shown, not validated: they may have their own names. */
function rendering(): Validator {
  lenient ??= new Validator({ ownNames: true });
  return lenient;
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
  if (typeof document === "string") return Buffer.from(document, "utf8");
  return Buffer.from("text" in document ? document.text : JSON.stringify(document), "utf8");
}

function placeOrBytes(source: Exclude<ReportSource, string>): Uint8Array | string {
  return isPath(source) ? source.path : bytesOf(source);
}

/** A result: the verdict, or why there is none. */
function judged(position: number, source: ReportSource, outcome: () => ValidationOutcome): Judged {
  try {
    return { position, source, outcome: outcome() };
  } catch (error) {
    if (error instanceof InternalError) return { position, source, error };
    return { position, source, error: unlessText(source, fileError(error)) };
  }
}

/** A string is a path in `validateMany`: says so if it looks like a document's text. */
function unlessText(source: ReportSource, error: FileError): FileError {
  if (typeof source !== "string" || !source.trimStart().startsWith("{")) return error;
  const message = `${error.message}; a string is a path here: give the text of a document as { text }`;
  return new FileError({ kind: "io", message, cause: error });
}

function documentOf({ error, bytes }: EngineDocument): Uint8Array {
  if (bytes === undefined) throw failure(error ?? "", new CallSite(documentOf));
  return bytes;
}

function fileError(error: unknown): FileError {
  if (error instanceof FileError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new FileError({ kind: "io", message, cause: error });
}
