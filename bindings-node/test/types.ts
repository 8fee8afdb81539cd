// What the compiler must accept and reject; checked by `npm run typecheck`, never run.

import {
  APIError,
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionStream,
  Client,
  type GatewrightError,
  type GenerateContentResponse,
  type Middleware,
  type Model,
  type NativeModel,
  RateLimitError,
  type RawEvent,
  type RequestOptions,
  type Response,
  type ResponseStreamEvent,
  type Stream,
  type VideoTask,
  webhooks,
} from "gatewright";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(yes: Same<A, B>): void => void yes;

declare const client: Client;
declare const flag: boolean;
const prompt = { model: "any model", messages: [{ role: "user" as const, content: "Hi" }] };

// The response's type follows the switch.
export async function streams(): Promise<void> {
  const whole = await client.chat.completions.create(prompt);
  same<typeof whole, ChatCompletion>(true);
  const events = await client.chat.completions.create({ ...prompt, stream: true });
  same<typeof events, ChatCompletionStream>(true);
  const either = await client.chat.completions.create({ ...prompt, stream: flag });
  same<typeof either, ChatCompletion | ChatCompletionStream>(true);
  for await (const event of events) same<typeof event, ChatCompletionChunk>(true);
  const plain: Stream<ChatCompletionChunk> = events;
  for await (const frame of plain.rawEvents()) same<typeof frame, RawEvent>(true);
}

// Each stream has the final document of its own operation, and no other's.
export async function finals(): Promise<void> {
  const chunks = await client.chat.completions.create({ ...prompt, stream: true });
  same<Awaited<ReturnType<typeof chunks.finalChatCompletion>>, ChatCompletion>(true);
  const events = await client.responses.create({ model: "m", input: "Hi", stream: true });
  same<Awaited<ReturnType<typeof events.finalResponse>>, Response>(true);
  const parts = await client.native.streamGenerateContent({ model: "m", contents: [] });
  same<Awaited<ReturnType<typeof parts.finalResponse>>, GenerateContentResponse>(true);
  for await (const text of chunks.text()) same<typeof text, string>(true);
  for await (const event of events.tee()[0]) same<typeof event, ResponseStreamEvent>(true);
  for await (const bytes of parts.toReadableStream()) same<typeof bytes, Uint8Array>(true);
  // @ts-expect-error: that of another protocol
  void chunks.finalResponse();
}

// Lists and streams can be iterated from the promise, too; other results can't.
export async function iterated(): Promise<void> {
  for await (const model of client.models.list()) same<typeof model, Model>(true);
  for (const model of await client.models.list()) same<typeof model, Model>(true);
  for (const model of await client.native.models.list()) same<typeof model, NativeModel>(true);
  const stream = client.chat.completions.create({ ...prompt, stream: true });
  for await (const chunk of stream) same<typeof chunk, ChatCompletionChunk>(true);
  const whole = client.chat.completions.create(prompt);
  for await (const nothing of whole) same<typeof nothing, never>(true);
  const response = await client.responses.create({ model: "m", input: "Hi" });
  same<typeof response.output_text, string>(true);
}

// Callbacks may be synchronous or asynchronous, and see what they may change.
export function callbacks(): Client {
  const timing: Middleware = {
    before(attempt) {
      attempt.headers.set("x-attempt", String(attempt.number));
      // @ts-expect-error: read only
      attempt.url = "elsewhere";
    },
    async after(_, outcome) {
      same<typeof outcome.error, GatewrightError | null>(true);
    },
  };
  const made = new Client({ apiKey: async ({ refresh }) => (refresh ? "new" : "old"), middleware: [timing] });
  // @ts-expect-error: a signal is a call's
  void made.withOptions({ signal: AbortSignal.timeout(1) });
  return made.withOptions({ extraHeaders: { "x-team": "blue" }, idleTimeoutMs: 1 });
}

// Misspelled, missing and mistyped members are rejected.
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

// Open enums accept new values and still know the existing ones.
export function open(task: VideoTask): string {
  const status: VideoTask["status"] = "a word of tomorrow";
  return task.status === "completed" ? status : "";
}

// Error classes are distinguishable.
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

// Long work: progress is typed, and records can be saved.
export async function longWork(path: URL): Promise<void> {
  const task = await client.videos.generations.wait("t1", {
    onProgress: (task) => same<typeof task, VideoTask>(true),
  });
  same<Awaited<ReturnType<typeof client.videos.generations.save>>, number>(true);
  await client.videos.generations.save(task, path, { overwrite: false });
  // @ts-expect-error: a task, not its address
  await client.videos.generations.save("https://h/files/a.mp4", path);
}

// A webhook is verified as received.
export async function webhook(request: Request): Promise<VideoTask> {
  // @ts-expect-error: parsed already
  client.webhooks.unwrap((await request.json()) as { id: string }, request.headers);
  return webhooks.unwrap(await request.text(), request.headers, ["whsec_a", "whsec_b"]);
}
