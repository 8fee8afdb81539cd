/** The check kit: checks whether a service is compatible, and creates the report. Source: section 2.12 of the specification. */

import { type EngineCheckRun, type EngineWritten, engine } from "./engine";
import { CallSite, failure, failureOf } from "./failure";
import { CHECK_OPTIONS, type CheckOptions } from "./generated/options";
import type { Check, CheckError, CheckId, OverallStatus, Report, Status } from "./generated/report";
import { refuseUnknown } from "./options";

export type { CheckId } from "./generated/report";

/** The progress events of a run. */
export type CheckProgress =
  | { readonly event: "planned"; readonly cells: number; readonly to_run: number }
  | {
      readonly event: "started";
      readonly index: number;
      readonly id: CheckId;
      readonly model: string | null;
    }
  | {
      readonly event: "finished";
      readonly index: number;
      readonly id: CheckId;
      readonly model: string | null;
      readonly check: CheckRecord;
    }
  | { readonly event: "protocol_checked"; readonly check: ProtocolCheck };

/** One check of a report. */
export type CheckRecord = Check;

/** A report. */
export type CheckReport = Report;

/** What was expected and observed in a check that was run, without secrets. */
export interface CheckEvidence {
  /** The check. */
  readonly id: CheckId;
  /** The model that was checked; null for the check of the model list. */
  readonly model: string | null;
  /** The expected and observed values, in the order in which they were checked. */
  readonly assertions: readonly {
    readonly what: string;
    readonly expected: string;
    readonly observed: string;
    readonly held: boolean;
  }[];
  /** Request and response as they were on the wire; null if no request was sent. */
  readonly exchange: { readonly request: string; readonly response: string } | null;
}

/** The additional checks of a run, in the form of `spec/protocols.schema.json`. */
export interface ProtocolReport {
  /** Version of the form of the document. */
  readonly schema_version: "1.0";
  /** The kit that made it. */
  readonly kit: { readonly name: string; readonly version: string };
  /** When, in RFC 3339. */
  readonly generated_at: string;
  /** Address of the service, without the base path. */
  readonly endpoint: string;
  /** Base path of the API; native generate-content is below `/v1beta` in place of `/v1`. */
  readonly base_path: string;
  /** The models that were tested. */
  readonly models: readonly string[];
  /** The results, by protocol, model and check. */
  readonly checks: readonly ProtocolCheck[];
  /** How many checks have which result. */
  readonly summary: { readonly passed: number; readonly failed: number; readonly skipped: number };
  /** `pass` if no check failed. */
  readonly overall_status: OverallStatus;
}

/** The result of an additional check. */
export interface ProtocolCheck {
  /** The protocol and the kind of request, such as `chat_tool_stream`. */
  readonly id: string;
  /** The protocol. */
  readonly protocol: "chat" | "messages" | "native";
  /** The model that was checked. */
  readonly model: string;
  /** The result. */
  readonly status: Status;
  /** Why it was not run; null if it was. */
  readonly reason: string | null;
  /** How long it took, in milliseconds. */
  readonly duration_ms: number | null;
  /** Status of the response. */
  readonly http_status: number | null;
  /** Why it failed; null if it did not. */
  readonly error: CheckError | null;
  /** The assertions that don't hold, of which `error` is the first. */
  readonly broken: CheckEvidence["assertions"];
}

/** `CheckOptions` with the service. */
export interface CheckRequest extends CheckOptions {
  /** Address of the service, http or https, without the base path. */
  endpoint: string;
}

/** The kit's names for the members of a profile. */
const PROFILE = { kitName: "kit_name", models: "models" } as const;

/**
 * The result of a run.
 *
 * @example
 * ```js
 * import { Client, check } from "gatewright";
 *
 * const result = await check(new Client().baseUrl, { only: ["models_endpoint"] });
 * await result.write("report.json");
 * console.log(result.report.summary.failed, result.evidence.length);
 * ```
 */
export class CheckResult {
  readonly #run: EngineCheckRun;
  /** The report as text, in canonical form. */
  readonly json: string;
  /** The report as an object. */
  readonly report: CheckReport;
  /** The additional checks as text, in canonical form; undefined without `protocols`. */
  readonly protocolsJson: string | undefined;
  /** The additional checks as an object; undefined without `protocols`. */
  readonly protocols: ProtocolReport | undefined;
  /** The evidence of each check that was run, in order. */
  readonly evidence: readonly CheckEvidence[];
  /** Whether the run was cancelled. */
  readonly interrupted: boolean;

  constructor(run: EngineCheckRun) {
    const outcome = run.result();
    if (typeof outcome === "string") throw failure(outcome, new CallSite(CheckResult));
    const { report, protocols, evidence, interrupted } = outcome;
    this.#run = run;
    this.json = report;
    this.report = JSON.parse(report) as CheckReport;
    this.protocolsJson = protocols;
    this.protocols = protocols === undefined ? undefined : (JSON.parse(protocols) as ProtocolReport);
    this.evidence = JSON.parse(evidence) as CheckEvidence[];
    this.interrupted = interrupted;
  }

  /** Whether no check failed, and no additional check. */
  get passed(): boolean {
    return [this.report, this.protocols].every((document) => (document?.overall_status ?? "pass") === "pass");
  }

  /** Writes the report, completely or not at all. Errors: `FileError`. */
  async write(path: string): Promise<void> {
    const site = new CallSite(this.write);
    namesOf(await this.#run.writeReport(path), site);
  }

  /** Writes the additional checks, completely or not at all. Errors: `FileError`, also if the run had none. */
  async writeProtocols(path: string): Promise<void> {
    const site = new CallSite(this.writeProtocols);
    namesOf(await this.#run.writeProtocols(path), site);
  }

  /** Writes one JSON file per piece of evidence into a folder, and returns their names. Errors: `FileError`. */
  async writeEvidence(folder: string): Promise<string[]> {
    const site = new CallSite(this.writeEvidence);
    return namesOf(await this.#run.writeEvidence(folder), site);
  }
}

/**
 * Checks whether a service is compatible: `check(endpoint, options)`, or `check({ endpoint, ...options })`.
 *
 * Errors: `TypeError` for an option that does not exist; `ConfigurationError` if one is out of bounds or there is no
 * key; in that case, nothing was sent. `CancelledError` if the signal ended it; its `result` is the `CheckResult` up to
 * then, with a complete report (no result if the signal was aborted before the run started).
 *
 * @example
 * ```js
 * import { Client, check } from "gatewright";
 *
 * const { passed } = await check(new Client().baseUrl, {
 *   only: ["models_endpoint"],
 *   onProgress: (progress) => console.log(progress.event),
 *   signal: AbortSignal.timeout(60_000),
 * });
 * console.log(passed);
 * ```
 */
export function check(endpoint: string, options?: CheckOptions): Promise<CheckResult>;
export function check(request: CheckRequest): Promise<CheckResult>;
export async function check(
  endpointOrRequest: string | CheckRequest,
  further?: CheckOptions,
): Promise<CheckResult> {
  const site = new CallSite(check);
  const { endpoint, options } = split(endpointOrRequest, further ?? {});
  const { apiKey, onProgress, signal } = options;
  if (signal?.aborted) throw cancelled(site, signal.reason);
  const key = apiKey ?? process.env["GATEWRIGHT_API_KEY"] ?? "";
  const run = engine.EngineCheckRun.create(kitOptions(endpoint, options), key);
  if (typeof run === "string") throw failure(run, site);
  const stop = (): void => run.cancel();
  signal?.addEventListener("abort", stop);
  try {
    for (let step = await run.next(); !step.done; step = await run.next()) {
      if (step.error !== undefined) throw failure(step.error, site);
      if (step.event !== undefined) onProgress?.(JSON.parse(step.event) as CheckProgress);
    }
  } catch (error) {
    stop();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  const result = new CheckResult(run);
  if (signal?.aborted) throw cancelled(site, signal.reason, result);
  return result;
}

/** Unifies the two ways to call it; rejects unknown options. */
function split(
  given: string | CheckRequest,
  further: CheckOptions,
): { endpoint: string; options: CheckOptions } {
  const { endpoint, ...inside } = typeof given === "string" ? { endpoint: given } : given;
  if (typeof given !== "string") refuseUnknown("check", given, { ...CHECK_OPTIONS, endpoint: "endpoint" });
  refuseUnknown("check", further, CHECK_OPTIONS);
  const options: CheckOptions = { ...inside, ...further };
  if (options.profile != null) refuseUnknown("check: profile", options.profile, PROFILE);
  return { endpoint, options };
}

/** The kit's own names. The kit rejects values out of bounds. */
function kitOptions(endpoint: string, { profile, ...options }: CheckOptions): string {
  const document = {
    endpoint,
    ...renamed(options, CHECK_OPTIONS),
    profile: profile && renamed(profile, PROFILE),
    runtime_version: process.version,
  };
  return JSON.stringify(document, (_, value: unknown) => (isBeyondJson(value) ? String(value) : value));
}

/** The members that the table has a name for, under that name. */
function renamed(members: object, names: Readonly<Record<string, string | null>>): object {
  const named = Object.entries(members).map(([name, value]) => [names[name], value] as const);
  return Object.fromEntries(named.filter(([name]) => name != null));
}

/** A number that JSON cannot represent is passed as text, so that the kit rejects it. */
function isBeyondJson(value: unknown): boolean {
  return typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value));
}

function cancelled(site: CallSite, cause: unknown, result?: CheckResult): Error {
  return failureOf({ kind: "cancelled", message: "check: aborted by its signal", cause, result }, site);
}

function namesOf({ error, names }: EngineWritten, site: CallSite): string[] {
  if (error !== undefined) throw failure(error, site);
  return names;
}
