/** The check kit: is a service compatible, and the report about it (specification 2.12). */

import { CallSite, failure, failureOf } from "./failure";
import { type NativeCheckRun, type NativeWritten, native } from "./native";
import { refuseUnknown } from "./options";

/** The six checks. */
export type CheckId =
  | "models_endpoint"
  | "model_access"
  | "responses_text"
  | "responses_stream"
  | "responses_function_tool"
  | "agent_cli_smoke";

/** What a run tells while it goes on. */
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
    };

/** One check of a report; further members are those of section 2.12. */
export interface CheckRecord {
  readonly id: CheckId;
  readonly layer: "api" | "agent";
  readonly model: string | null;
  readonly status: "pass" | "fail" | "skip";
  readonly [member: string]: unknown;
}

/** A report; further members are those of section 2.12. */
export interface CheckReport {
  readonly overall_status: "pass" | "fail";
  readonly checks: readonly CheckRecord[];
  readonly summary: { readonly passed: number; readonly failed: number; readonly skipped: number };
  readonly [member: string]: unknown;
}

/** What was expected and observed in a check that was run, without secrets. */
export interface CheckEvidence {
  readonly id: CheckId;
  readonly model: string | null;
  readonly assertions: readonly {
    readonly what: string;
    readonly expected: string;
    readonly observed: string;
    readonly held: boolean;
  }[];
  readonly exchange: { readonly request: string; readonly response: string } | null;
}

export interface CheckOptions {
  /** Key that the requests carry. Default: `GATEWRIGHT_API_KEY`. */
  apiKey?: string | undefined;
  /** Path below the endpoint. Default: `/v1`. */
  basePath?: string | undefined;
  /** Models to check, in order. Default: all of the profile. */
  models?: readonly string[] | undefined;
  /** Whether every check runs on every model; else the stream and the function tool on the first alone. */
  full?: boolean | undefined;
  /** Models to run the agent's program on. Default: `skipped`. */
  agentMode?: "skipped" | "one-model" | "all-models" | undefined;
  /** The agent's program. Default: that of `GATEWRIGHT_AGENT_PROGRAM`, else the one on the path. */
  agentProgram?: string | undefined;
  /** Names of environment variables to hand on to the agent beside PATH. */
  agentEnv?: readonly string[] | undefined;
  /** Time limit of a request, 1000 to 120000. Default: 30000. */
  timeoutMs?: number | undefined;
  /** Time limit of a run of the agent, 5000 to 300000. Default: 120000. */
  agentTimeoutMs?: number | undefined;
  /** Checks to run; none means all. */
  only?: readonly CheckId[] | undefined;
  /** Checks to leave out. */
  skip?: readonly CheckId[] | undefined;
  /** Whether the models are checked at the same time. */
  parallel?: boolean | undefined;
  /** Kit name and model ids in place of the specification's. */
  profile?: { kitName?: string | undefined; models?: readonly string[] | undefined } | undefined;
  /** PEM file of certificates to trust beside the platform's. */
  caBundle?: string | undefined;
  /** Called with each event. What it throws ends the run. */
  onProgress?: ((progress: CheckProgress) => void) | undefined;
  /** Ends the run at once. */
  signal?: AbortSignal | undefined;
}

/** As `CheckOptions`, with the service in them. */
export interface CheckRequest extends CheckOptions {
  /** Address of the service, http or https, without the base path. */
  endpoint: string;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof CheckOptions>([
  "apiKey",
  "basePath",
  "models",
  "full",
  "agentMode",
  "agentProgram",
  "agentEnv",
  "timeoutMs",
  "agentTimeoutMs",
  "only",
  "skip",
  "parallel",
  "profile",
  "caBundle",
  "onProgress",
  "signal",
]);
const REQUEST: ReadonlySet<string> = new Set([...OPTIONS, "endpoint"]);
const PROFILE: ReadonlySet<string> = new Set<keyof NonNullable<CheckOptions["profile"]>>([
  "kitName",
  "models",
]);

/** What a run leaves behind. */
export class CheckResult {
  readonly #run: NativeCheckRun;
  /** The report as text, in canonical form. */
  readonly json: string;
  readonly report: CheckReport;
  /** Of each check that was run, in order. */
  readonly evidence: readonly CheckEvidence[];
  /** Whether the run was cut short. */
  readonly interrupted: boolean;

  constructor(run: NativeCheckRun) {
    const outcome = run.outcome();
    if (typeof outcome === "string") throw failure(outcome, new CallSite(CheckResult));
    const { report, evidence, interrupted } = outcome;
    this.#run = run;
    this.json = report;
    this.report = JSON.parse(report) as CheckReport;
    this.evidence = JSON.parse(evidence) as CheckEvidence[];
    this.interrupted = interrupted;
  }

  /** Whether no check failed. */
  get passed(): boolean {
    return this.report.overall_status === "pass";
  }

  /** Writes the report, whole or not at all. Errors: `FileError`. */
  async write(path: string): Promise<void> {
    const site = new CallSite(this.write);
    namesOf(await this.#run.writeReport(path), site);
  }

  /** Writes one JSON file per piece of evidence into a folder, and gives their names. Errors: `FileError`. */
  async writeEvidence(folder: string): Promise<string[]> {
    const site = new CallSite(this.writeEvidence);
    return namesOf(await this.#run.writeEvidence(folder), site);
  }
}

/**
 * Checks whether a service is compatible: `check(endpoint, options)`, or `check({ endpoint, ...options })`.
 *
 * Errors: `TypeError` for an option that does not exist; `ConfigurationError` if one is out of bounds or there is no
 * key; nothing was sent then. `CancelledError` if the signal ended it; its `result` is the `CheckResult` of what was
 * done, whose report is whole (none if the signal was aborted before the run began).
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
  const run = native.NativeCheckRun.create(kitOptions(endpoint, options), key);
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

/** The two ways to call it made one; refuses options that do not exist. */
function split(
  given: string | CheckRequest,
  further: CheckOptions,
): { endpoint: string; options: CheckOptions } {
  const { endpoint, ...inside } = typeof given === "string" ? { endpoint: given } : given;
  if (typeof given !== "string") refuseUnknown("check", given, REQUEST);
  refuseUnknown("check", further, OPTIONS);
  const options: CheckOptions = { ...inside, ...further };
  if (options.profile != null) refuseUnknown("check: profile", options.profile, PROFILE);
  return { endpoint, options };
}

/** The kit's own names. It refuses what is out of bounds. */
function kitOptions(endpoint: string, options: CheckOptions): string {
  const { profile } = options;
  const document = {
    endpoint,
    base_path: options.basePath,
    models: options.models,
    full: options.full,
    agent_mode: options.agentMode,
    agent_program: options.agentProgram,
    agent_env: options.agentEnv,
    timeout_ms: options.timeoutMs,
    agent_timeout_ms: options.agentTimeoutMs,
    only: options.only,
    skip: options.skip,
    parallel: options.parallel,
    profile: profile && { kit_name: profile.kitName, models: profile.models },
    ca_bundle: options.caBundle,
    runtime_version: process.version,
  };
  return JSON.stringify(document, (_, value: unknown) => (isBeyondJson(value) ? String(value) : value));
}

/** A number that JSON has no form for: it crosses as text, for the kit to refuse. */
function isBeyondJson(value: unknown): boolean {
  return typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value));
}

function cancelled(site: CallSite, cause: unknown, result?: CheckResult): Error {
  return failureOf({ kind: "cancelled", message: "check: aborted by its signal", cause, result }, site);
}

function namesOf({ error, names }: NativeWritten, site: CallSite): string[] {
  if (error !== undefined) throw failure(error, site);
  return names;
}
