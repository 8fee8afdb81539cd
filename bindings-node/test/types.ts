// What the compiler must accept and reject; checked by `npm run typecheck`, never run.

import Gatewright, {
  APIError,
  type ChatCompletion,
  type ChatCompletionChunk,
  type ChatCompletionStream,
  Client,
  type GatewrightError,
  type GenerateContentResponse,
  type Message,
  type MessageBlock,
  type Middleware,
  type Model,
  type NativeModel,
  RateLimitError,
  type RawEvent,
  type RequestOptions,
  type Response,
  type ResponseItem,
  type ResponseStream,
  type ResponseStreamEvent,
  type Stream,
  type TokenLogprob,
  tool,
  type VideoTask,
  webhooks,
} from "gatewright";
import { z } from "zod";

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
  for await (const item of client.responses.inputItems.list("r")) same<typeof item, ResponseItem>(true);
  for (const item of await client.responses.inputItems.list("r")) same<typeof item, ResponseItem>(true);
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

// A value has the type of its schema; that of a JSON Schema is unknown.
export async function structured(): Promise<void> {
  const City = z.object({ name: z.string(), districts: z.array(z.string()).default([]) });
  const chat = await client.chat.completions.parse({ ...prompt, response_format: City });
  const parsed = chat.choices[0]?.message.parsed;
  same<typeof parsed, { name: string; districts: string[] } | null | undefined>(true);
  const response = await client.responses.parse({ model: "m", input: "Hi", text: { format: City } });
  same<typeof response.output_parsed, { name: string; districts: string[] } | null>(true);
  const plain = await client.responses.parse({
    model: "m",
    input: "Hi",
    text: { format: { type: "object" } },
  });
  same<typeof plain.output_parsed, unknown>(true);
  const message = await client.messages.parse({ ...prompt, max_tokens: 9, output_config: { format: City } });
  same<typeof message.parsed_output, { name: string; districts: string[] } | null>(true);
  const content = await client.native.parse({
    model: "m",
    contents: [],
    generationConfig: { temperature: 1, responseJsonSchema: City },
  });
  same<typeof content.parsed, { name: string; districts: string[] } | null>(true);
  for await (const model of client.native.models.list()) same<typeof model, NativeModel>(true);
  const whole = await client.chat.completions.create({ ...prompt, response_format: City });
  same<typeof whole, ChatCompletion>(true);
  const stream = await client.responses.create({
    model: "m",
    input: "Hi",
    text: { format: City },
    stream: true,
  });
  same<typeof stream, ResponseStream>(true);
  // @ts-expect-error: no such member
  void client.chat.completions.parse({ ...prompt, response_format: City, temprature: 1 });
  // @ts-expect-error: a value is there at the end
  void client.chat.completions.parse({ ...prompt, response_format: City, stream: true });
  // @ts-expect-error: no schema
  void client.chat.completions.parse({ ...prompt, response_format: "City" });
}

// Events tell the answer so far, with the type of the value at the end.
export async function soFar(): Promise<void> {
  const City = z.object({ name: z.string() });
  const stream = client.chat.completions.stream({ ...prompt, response_format: City });
  for await (const event of stream) {
    if (event.type === "content.delta") same<typeof event.snapshot, string>(true);
    if (event.type === "content.done") same<typeof event.parsed, { name: string } | null>(true);
    if (event.type === "chunk") same<typeof event.chunk, ChatCompletionChunk>(true);
  }
  const parsed = (await stream.finalChatCompletion()).choices[0]?.message.parsed;
  same<typeof parsed, { name: string } | null | undefined>(true);
  same<Awaited<ReturnType<typeof stream.finalContent>>, string | null>(true);
  const events = client.responses.stream({ model: "m", input: "Hi", text: { format: City } });
  for await (const event of events) {
    if (event.type === "response.output_text.delta") same<typeof event.snapshot, string>(true);
  }
  same<Awaited<ReturnType<typeof events.finalResponse>>["output_parsed"], { name: string } | null>(true);
  const written = client.messages.stream({ ...prompt, max_tokens: 1 });
  for await (const event of written) {
    if (event.type === "text") same<typeof event.snapshot, string>(true);
    if (event.type === "content_block_stop") same<typeof event.content_block, MessageBlock>(true);
    if (event.type === "message_stop") same<typeof event.message, Message>(true);
    // @ts-expect-error: only the end of a block has the whole block
    if (event.type === "message_start") void event.content_block;
  }
  for await (const text of written.textStream()) same<typeof text, string>(true);
  same<typeof written.currentMessage, Message | undefined>(true);
}

// Listeners get what those of other SDKs get.
export async function listeners(): Promise<void> {
  const City = z.object({ name: z.string() });
  const written = client.messages
    .stream({ ...prompt, max_tokens: 1 })
    .on("text", (text, snapshot) => same<typeof text | typeof snapshot, string>(true))
    .once("contentBlock", (block) => same<typeof block, MessageBlock>(true))
    .off("end", () => {});
  same<Awaited<ReturnType<typeof written.finalText>>, string>(true);
  same<Awaited<ReturnType<typeof written.emitted<"text">>>, [text: string, snapshot: string]>(true);
  same<Awaited<ReturnType<typeof written.emitted<"message">>>, Message>(true);
  // @ts-expect-error: no such event
  written.on("content", () => {});
  const stream = client.chat.completions
    .stream({ ...prompt, response_format: City })
    .on("chunk", (chunk) => same<typeof chunk, ChatCompletionChunk>(true))
    .on("content.done", ({ parsed }) => same<typeof parsed, { name: string } | null>(true))
    .on("logprobs.content.delta", ({ snapshot }) => same<typeof snapshot, readonly TokenLogprob[]>(true));
  same<Awaited<ReturnType<typeof stream.finalMessage>>["parsed"], { name: string } | null>(true);
  client.responses
    .stream({ model: "m", input: "Hi" })
    .on("response.function_call_arguments.delta", ({ snapshot }) => same<typeof snapshot, string>(true))
    .on("error", (error) => same<typeof error, Error>(true));
}

// The arguments of a tool have the type of its schema.
export async function tools(): Promise<void> {
  const weather = tool({
    name: "weather",
    parameters: z.object({ place: z.string(), days: z.number().default(1) }),
    run: (given, { signal }) => {
      same<typeof given, { place: string; days: number }>(true);
      same<typeof signal, AbortSignal | undefined>(true);
      return given.place;
    },
  });
  const bare = tool({ name: "time", run: () => new Date() });
  const run = await client.chat.completions.runTools({ ...prompt, tools: [weather, bare] }, { maxRounds: 3 });
  same<typeof run.completion, ChatCompletion>(true);
  same<typeof run.text, string>(true);
  const next = await client.responses.runTools({ model: "m", input: "Hi", tools: [bare] }, { timeoutMs: 1 });
  same<typeof next.response, Response>(true);
  await client.chat.completions.runTools({ ...prompt, messages: run.messages, tools: [bare] });
  const message = await client.messages.runTools({ ...prompt, max_tokens: 1, tools: [bare] });
  same<typeof message.completion, Message>(true);
  await client.messages.create({ ...prompt, max_tokens: 1, messages: message.messages });
  const content = await client.native.runTools({ model: "m", contents: [], tools: [bare] });
  await client.native.generateContent({ model: "m", contents: content.messages });
  // @ts-expect-error: made with tool()
  await client.chat.completions.runTools({ ...prompt, tools: [{ type: "function" }] });
}

// The default export is the client, and takes the names of other SDKs.
export function familiar(): Client {
  const made: Client = new Gatewright({ baseURL: "http://127.0.0.1:8080", timeout: 1, defaultHeaders: {} });
  void made.models.list({ timeout: 1 });
  // @ts-expect-error: no such resource
  void made.evals;
  return made.withOptions({ timeout: 1 });
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
