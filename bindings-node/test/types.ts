// What the compiler must accept and refuse; checked by `npm run typecheck`, never run.

import {
  APIError,
  type ChatCompletion,
  type ChatCompletionChunk,
  type Client,
  type GatewrightError,
  RateLimitError,
  type RequestOptions,
  type Stream,
  type VideoTask,
} from "gatewright";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(yes: Same<A, B>): void => void yes;

declare const client: Client;
declare const flag: boolean;
const prompt = { model: "any model", messages: [{ role: "user" as const, content: "Hi" }] };

// The answer's type follows the switch.
export async function streams(): Promise<void> {
  const whole = await client.chat.completions.create(prompt);
  same<typeof whole, ChatCompletion>(true);
  const events = await client.chat.completions.create({ ...prompt, stream: true });
  same<typeof events, Stream<ChatCompletionChunk>>(true);
  const either = await client.chat.completions.create({ ...prompt, stream: flag });
  same<typeof either, ChatCompletion | Stream<ChatCompletionChunk>>(true);
  for await (const event of events) same<typeof event, ChatCompletionChunk>(true);
}

// Misspelt, missing and mistyped members are refused.
export function refused(): void {
  // @ts-expect-error: no such member
  void client.chat.completions.create({ ...prompt, temprature: 1 });
  // @ts-expect-error: messages is required
  void client.chat.completions.create({ model: "m" });
  // @ts-expect-error: a number
  void client.chat.completions.create({ ...prompt, temperature: "hot" });
  // @ts-expect-error: the model is part of the parameters
  void client.native.generateContent({ contents: [] });
  // @ts-expect-error: options come second
  void client.native.models.list({ signal: AbortSignal.timeout(1) });
  // @ts-expect-error: no such option
  void client.models.list({ retries: 1 });
  // @ts-expect-error: no such resource
  void client.chats;
}

// Open lists take new words and still know the old ones.
export function open(task: VideoTask): string {
  const status: VideoTask["status"] = "a word of tomorrow";
  return task.status === "completed" ? status : "";
}

// Classes of errors tell each other apart.
export function narrow(error: GatewrightError): number | undefined {
  if (error instanceof RateLimitError) {
    same<typeof error.kind, "rate_limit">(true);
    return error.retryAfterMs;
  }
  return error instanceof APIError ? error.status : undefined;
}

export const options: RequestOptions = {
  signal: AbortSignal.timeout(1),
  timeoutMs: 1,
  extraBody: { x: [1] },
};
