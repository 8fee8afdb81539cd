/** The verdict on a document, from what the engine made of it. */

import type { EngineFinding, EngineJudged, EngineMade, EngineVerdict } from "./engine";
import { CallSite, failure } from "./failure";

/** One rule that a document breaks, or one advisory. */
export interface Violation {
  /**
   * JSON Pointer of the invalid value; for a missing or unknown property, of its object. Beyond 256 code
   * points, it is truncated and ends in `…`, as does `property`.
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
  /** The expected value, in words. */
  readonly expected: string | null;
  /** The actual value: the document's own text, truncated to 64 characters. */
  readonly found: string | null;
  /** One line for people: location, problem, section. */
  readonly message: string;
  /** Section of the specification the rule comes from; `ours` for a rule it does not state. */
  readonly section: string;
}

/** The verdict on a document. */
export interface ValidationOutcome {
  /**
   * Whether the document is a valid report, or valid additional checks; with `strict`, also whether it has no
   * advisories.
   */
  readonly valid: boolean;
  /** In document order: the first 1000, or `maxFindings`. */
  readonly violations: readonly Violation[];
  /** Suspicious content that breaks no rule; invalid only with `strict`. Limited like `violations`. */
  readonly advisories: readonly Violation[];
  /** Number of further violations that are not listed. */
  readonly more_violations: number;
  /** Number of further advisories that are not listed. */
  readonly more_advisories: number;
}

/**
 * A document to be converted is not a valid report.
 *
 * @example
 * ```js
 * import { report } from "gatewright";
 *
 * try {
 *   report.html("{}");
 * } catch (error) {
 *   if (!(error instanceof report.InvalidReport)) throw error;
 *   console.log(error.outcome.violations[0].message);
 * }
 * ```
 */
export class InvalidReport extends Error {
  /** The verdict on the document. */
  readonly outcome: ValidationOutcome;

  constructor(message: string, outcome: ValidationOutcome) {
    super(message);
    Object.defineProperty(this, "name", { value: "InvalidReport", configurable: true, writable: true });
    this.outcome = outcome;
  }
}

/** The outcome that the engine has made; that of a clean document, if it has made none. */
export function outcomeOf(made: EngineJudged | null | undefined): ValidationOutcome {
  if (made === null || made === undefined) {
    return { valid: true, violations: [], advisories: [], more_violations: 0, more_advisories: 0 };
  }
  if (typeof made === "string") return parsed(made);
  const { error, verdict } = made;
  if (error !== undefined) throw failure(error, new CallSite(outcomeOf));
  return parsed(verdict ?? "");
}

function parsed(json: string): ValidationOutcome {
  const [valid, violations, advisories, more_violations, more_advisories] = JSON.parse(json) as EngineVerdict;
  return {
    valid,
    violations: violations.map(violationOf),
    advisories: advisories.map(violationOf),
    more_violations,
    more_advisories,
  };
}

function violationOf(finding: EngineFinding): Violation {
  const [pointer, line, column, rule, property, expected, found, message, section] = finding;
  return { pointer, line, column, rule, property, expected, found, message, section };
}

/** The text that the engine has made of a document. Errors: `InvalidReport`. */
export function textOf(made: EngineMade): string {
  if (made.text === undefined) throw new InvalidReport(made.summary ?? "", outcomeOf(made));
  return made.text;
}
