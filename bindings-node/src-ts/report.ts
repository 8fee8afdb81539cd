/** Compatibility reports (specification 2.12): is a document one, and if not, why. */

import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

import { type NativeReportOptions, native } from "./native";

/** One rule a document breaks, or one thing worth knowing about it. */
export interface Violation {
  /** JSON Pointer to the value; `""` is the document. */
  readonly pointer: string;
  /** Line of the value in the input, from 1. */
  readonly line: number;
  /** Column of the value in its line, from 1. */
  readonly column: number;
  /** JSON Schema keyword, or why the document cannot be read: `syntax`, `duplicate_key`, `encoding`, … */
  readonly rule: string;
  /** The member the rule is about, if it is about one. */
  readonly property: string | null;
  readonly expected: string | null;
  readonly found: string | null;
  /** In words. */
  readonly message: string;
  /** Section of the specification. */
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
}

/** A document: its bytes, its text, or the file that holds it. */
export type ReportSource = Uint8Array | string | { readonly path: string };

/**
 * Validates a report. A document that cannot be read as JSON is invalid, not an error.
 *
 * Errors: those of the file system, if a path is given.
 */
export function validate(source: ReportSource, options: ValidateOptions = {}): ValidationOutcome {
  return judge(isPath(source) ? readFileSync(source.path) : source, options);
}

/** As `validate`, of a file that is read without blocking. */
export async function validateFile(path: string, options: ValidateOptions = {}): Promise<ValidationOutcome> {
  return judge(await readFile(path), options);
}

function isPath(source: ReportSource): source is { readonly path: string } {
  return typeof source === "object" && !(source instanceof Uint8Array);
}

function judge(document: Uint8Array | string, options: ValidateOptions): ValidationOutcome {
  const settings: NativeReportOptions = {};
  if (options.strict !== undefined) settings.strict = options.strict;
  if (options.models !== undefined) settings.models = [...options.models];
  if (options.kitName !== undefined) settings.kitName = options.kitName;
  const bytes = typeof document === "string" ? Buffer.from(document, "utf8") : document;
  return JSON.parse(native.validateReport(bytes, settings)) as ValidationOutcome;
}
