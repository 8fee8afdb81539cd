// Operator requests to the gateway, under /admin.
import { type Asking, askJson } from "./api.ts";
import { keys } from "./session.ts";

export interface Scopes {
  models: string[];
  operations: string[];
  /** Present only if true. */
  show_upstream?: boolean;
}

export interface Limits {
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  concurrent_requests: number | null;
  tokens_per_day: number | null;
  tokens_per_month: number | null;
  cost_per_day: number | null;
  cost_per_month: number | null;
  /** Present only if set. */
  file_bytes?: number | null;
}

/** A key. Times are in seconds since 1970. */
export interface Key {
  id: string;
  name: string;
  scopes: Scopes;
  limits: Limits;
  created: number;
  expires: number | null;
  rotated: number | null;
  revoked: number | null;
}

/** A key with its secret, which is shown only once. */
export interface Issued {
  secret: string;
  key: Key;
}

export interface UsageRow {
  day: string | null;
  key: string | null;
  name: string | null;
  model: string | null;
  upstream: string | null;
  requests: number;
  complete: number;
  estimated: number;
  input_tokens: number;
  cached_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  cost: number;
  /** Requests whose cost is unknown. `cost` excludes them. */
  unpriced: number;
}

export interface Upstream {
  name: string;
  kind: string;
  region: string | null;
  in_flight: number;
  keys: number;
  models: { model: string; upstream_model: string; breaker: string; keys_waiting: number }[];
}

/** A video task. Times are in seconds since 1970. */
export interface Task {
  id: string;
  key: string;
  model: string;
  status: string;
  created: number;
  ended: number | null;
  problem: string | null;
}

export interface Notification {
  id: string;
  task: string;
  key: string;
  receiver: string;
  status: string;
  created: number;
  attempts: number;
  problem: string | null;
  due: number | null;
  ended: number | null;
}

/** A request. Times are in milliseconds, `begun` since 1970. */
export interface Request {
  id: string;
  operation: string;
  key: string | null;
  model: string | null;
  upstream: string | null;
  begun: number;
  status: number | null;
  first_byte_ms: number | null;
  duration_ms: number;
  bytes: number;
  outcome: string | null;
}

/** Sends a request with the admin key. */
export function asAdmin<T>(path: string, asking: Asking = {}): Promise<T> {
  return askJson<T>(keys.value.admin ?? "", `/admin/${path}`, asking);
}

/** The display name of a key: its name if known, otherwise its id. */
export const keyName = (all: Key[] | null | undefined, id: string | null): string =>
  all?.find((key) => key.id === id)?.name ?? id ?? "none";
