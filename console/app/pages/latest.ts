// Errors and latency of the newest requests.
import type { Request } from "../admin.ts";

/** What the gateway's list of requests holds at most. */
export const MAX_LISTED = 500;

export interface Figures {
  count: number;
  failed: number;
  /** Medians, in milliseconds; `null`: there are none. */
  firstByte: number | null;
  took: number | null;
  /** The duration that 95 % of the requests don't exceed. */
  slow: number | null;
}

/** Whether the gateway or an upstream failed the request, or rejected it. */
export const isFailed = ({ status, outcome }: Request): boolean =>
  outcome === "failed" || (status !== null && status >= 400);

/** Figures of completed requests. Latency is that of requests that didn't fail. */
export function figures(requests: Request[]): Figures {
  const well = requests.filter((request) => !isFailed(request) && request.outcome === "complete");
  const first = well.flatMap(({ first_byte_ms }) => (first_byte_ms === null ? [] : [first_byte_ms]));
  const took = well.map(({ duration_ms }) => duration_ms);
  return {
    count: requests.length,
    failed: requests.filter(isFailed).length,
    firstByte: quantile(first, 0.5),
    took: quantile(took, 0.5),
    slow: quantile(took, 0.95),
  };
}

/** The smallest value that this share of the values doesn't exceed. */
function quantile(values: number[], share: number): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}
