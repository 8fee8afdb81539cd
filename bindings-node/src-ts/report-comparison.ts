/** The changes from one report to another, as `Validator.diff` returns them. */

import type { OverallStatus, Status } from "./generated/report";

/** What counts as slower or faster in a comparison. */
export interface DiffOptions {
  /**
   * A cell is slower if its time grew by more than this percentage of the old time, and by more than
   * `slowerMs`. Default: 50.
   */
  slowerPercent?: number | undefined;
  /** In milliseconds. Default: 200. */
  slowerMs?: number | undefined;
}

/** A cell of two reports: a check on a model, or without a model. */
export interface ComparedCell {
  /** The check. */
  readonly id: string;
  /** The model; null for the check of the model list. */
  readonly model: string | null;
}

/** A cell whose result changed. */
export interface Turn extends ComparedCell {
  /** The result in the old report. */
  readonly old: Status;
  /** The result in the new report. */
  readonly new: Status;
  /** Why the new result is not a pass, or why the old one was not. */
  readonly explanation: string | null;
}

/** A cell whose value differs. */
export interface Reworded extends ComparedCell {
  /** The value in the old report. */
  readonly old: string;
  /** The value in the new report. */
  readonly new: string;
}

/** A cell whose duration changed. */
export interface Timing extends ComparedCell {
  /** Time in the old report, in milliseconds. */
  readonly old_ms: number;
  /** Time in the new report, in milliseconds. */
  readonly new_ms: number;
}

/** One of two reports. */
export interface Side {
  /** Address of the tested service. */
  readonly endpoint: string;
  /** When the report was created. */
  readonly generated_at: string;
  /** Its verdict. */
  readonly overall_status: OverallStatus;
}

/** The changes from one report to another. A missing cell counts as skipped. */
export interface Comparison {
  /** The old report. */
  readonly old: Side;
  /** The new report. */
  readonly new: Side;
  /** Settings that differ, by JSON Pointer. */
  readonly settings: readonly { readonly pointer: string; readonly old: unknown; readonly new: unknown }[];
  /** Cells that did not pass and now do. */
  readonly better: readonly Turn[];
  /** Cells that passed and no longer do, or were skipped and now fail. */
  readonly worse: readonly Turn[];
  /** Cells that passed, and that the new run left out. */
  readonly not_run: readonly Turn[];
  /** Cells that failed, and that the new run skipped. */
  readonly hidden: readonly Turn[];
  /** Cells that fail in both reports, for different reasons. */
  readonly fails_otherwise: readonly Reworded[];
  /** Cells with the same result that took longer. */
  readonly slower: readonly Timing[];
  /** Cells with the same result that took less time. */
  readonly faster: readonly Timing[];
  /** Cells whose reported model differs. */
  readonly other_model: readonly Reworded[];
  /** What counts as slower or faster. */
  readonly thresholds: { readonly percent: number; readonly ms: number };
}
