/** Compatibility reports (specification 2.12): is a document one, and if not, why. */

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

import { type NativeValidator, type NativeValidatorOptions, native } from "./native";

/** One rule a document breaks, or one thing worth knowing about it. */
export interface Violation {
  /** JSON Pointer of the value at fault; of the object, where a property is missing or unknown. */
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
  /** In document order. */
  readonly violations: readonly Violation[];
  /** Not against any rule, yet suspicious; with `strict` they make a document invalid. */
  readonly advisories: readonly Violation[];
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
}

/** A document: its bytes, its text, or the file that holds it. */
export type ReportSource = Uint8Array | string | { readonly path: string };

/** Judges reports by one set of options. Making one compiles the schema, so keep it for many documents. */
export class Validator {
  readonly #native: NativeValidator;

  constructor(options: ValidateOptions = {}) {
    const settings: NativeValidatorOptions = {};
    if (options.strict !== undefined) settings.strict = options.strict;
    if (options.models !== undefined) settings.models = [...options.models];
    if (options.kitName !== undefined) settings.kitName = options.kitName;
    if (options.maxBytes !== undefined) settings.maxBytes = options.maxBytes;
    this.#native = new native.NativeValidator(settings);
  }

  /**
   * Validates a report. A document that cannot be read as JSON is invalid, not an error.
   *
   * Errors: those of the file system, if a path is given.
   */
  validate(source: ReportSource): ValidationOutcome {
    return this.#judge(isPath(source) ? readFileSync(source.path) : source);
  }

  /** As `validate`, of a file that is read without blocking. */
  async validateFile(path: string): Promise<ValidationOutcome> {
    return this.#judge(await readFile(path));
  }

  #judge(document: Uint8Array | string): ValidationOutcome {
    const bytes = typeof document === "string" ? Buffer.from(document, "utf8") : document;
    return JSON.parse(this.#native.validate(bytes)) as ValidationOutcome;
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

function validator(options: ValidateOptions | undefined): Validator {
  if (options !== undefined) return new Validator(options);
  standard ??= new Validator();
  return standard;
}

function isPath(source: ReportSource): source is { readonly path: string } {
  return typeof source === "object" && !(source instanceof Uint8Array);
}
