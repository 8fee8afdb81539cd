// The types in use: checked by `tsc --strict`, and run after compilation.
import {
  APIStatusError,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  Client,
  type ClientOptions,
  RateLimitError,
  type Stream,
} from "gatewright";

const options: ClientOptions = { timeoutMs: 60_000, maxRetries: 1 };
const client = new Client(options);

const request = {
  model: "model-sol",
  messages: [{ role: "user", content: "Which river is the longest?" }],
} satisfies ChatCompletionRequest;

async function textOf(stream: Stream<ChatCompletionChunk>): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += chunk.choices?.[0]?.delta?.content ?? "";
  return text;
}

async function main(): Promise<void> {
  const { data, response } = await client.chat.completions.create(request).withResponse();
  console.log(data.choices[0]?.finish_reason, response.status);
  console.log(await textOf(await client.chat.completions.create({ ...request, stream: true })));

  try {
    await client.chat.completions.create({ ...request, model: "no-such-model" });
  } catch (error) {
    if (error instanceof RateLimitError) console.log("again in", error.retryAfterMs, "ms");
    else if (error instanceof APIStatusError) console.log(error.name, error.status, error.code);
    else throw error;
  }
}

void main();
