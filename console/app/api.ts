// Requests to the gateway that serves this page. The key is only ever sent in a header, never in a URL.

/** The error for a request that the gateway rejected or that never reached it. */
export class Refused extends Error {
  readonly status: number | null;
  readonly code: string | null;
  readonly requestId: string | null;
  readonly retryAfter: string | null;

  constructor(message: string, status: number | null, code: string | null, headers: Headers | null) {
    super(message);
    this.name = "Refused";
    this.status = status;
    this.code = code;
    this.requestId = headers?.get("x-request-id") ?? null;
    this.retryAfter = headers?.get("retry-after") ?? null;
  }
}

export interface RequestOptions {
  method?: string;
  /** Sent as JSON. */
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** Sends a request. Throws `Refused` unless the response is a success. */
export async function ask(key: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { authorization: `Bearer ${key}`, accept: "application/json" };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method: options.method ?? (options.body === undefined ? "GET" : "POST"),
      headers,
      body: options.body === undefined ? null : JSON.stringify(options.body),
      signal: options.signal ?? null,
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused("Can't reach the gateway. Is it still running?", null, null, null);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Like `ask`, for a JSON response. */
export async function askJson<T>(key: string, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await ask(key, path, options);
  return (await response.json()) as T;
}

async function refusal(response: Response): Promise<Refused> {
  const text = await response.text().catch(() => "");
  let message = `The gateway returned status ${response.status}.`;
  let code: string | null = null;
  try {
    // All three error formats have the message in the same place.
    const { error } = JSON.parse(text) as { error?: { message?: unknown; code?: unknown } };
    if (typeof error?.message === "string") message = error.message;
    if (typeof error?.code === "string") code = error.code;
  } catch {
    // The response isn't from the gateway itself.
  }
  return new Refused(message, response.status, code, response.headers);
}

/** The message of an error. */
export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
