// Operator requests to the gateway, under /admin. Their types are generated from spec/admin.yaml.
import { askJson, type RequestOptions } from "./api.ts";
import type { Key } from "./generated/types.ts";
import { keys } from "./session.ts";

export type {
  BodyText,
  IssuedKey as Issued,
  Key,
  KeyLimits as Limits,
  LoggedRequest as Request,
  Notification,
  RequestContent,
  RequestLog,
  Upstream,
  UpstreamTest,
  UsageRow,
  VideoTask as Task,
} from "./generated/types.ts";

/** Sends a request with the admin key. */
export function asAdmin<T>(path: string, options: RequestOptions = {}): Promise<T> {
  return askJson<T>(keys.value.admin ?? "", `/admin/${path}`, options);
}

/** The display name of a key: its name if known, otherwise its id. */
export const keyName = (all: Key[] | null | undefined, id: string | null): string =>
  all?.find((key) => key.id === id)?.name ?? id ?? "none";
