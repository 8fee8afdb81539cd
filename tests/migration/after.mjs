// The same script twice: before.mjs uses the official SDK, after.mjs this client. They differ in the import
// and the constructor, and print the same; `cargo xtask test migration` verifies that.
//
// Usage: GATEWRIGHT_BASE_URL=… GATEWRIGHT_API_KEY=… node FILE
import { BadRequestError, Client, NotFoundError } from "gatewright";

const address = `${process.env.GATEWRIGHT_BASE_URL}/v1`;
const apiKey = process.env.GATEWRIGHT_API_KEY;

const client = new Client({ baseURL: address, apiKey });

// Chat
const completion = await client.chat.completions.create({
  model: "model-sol",
  messages: [
    { role: "system", content: "You are terse." },
    { role: "user", content: "Reply with exactly: good morning" },
  ],
  temperature: 0.2,
});
const choice = completion.choices[0];
console.log("chat:", choice.message.role, choice.message.content, choice.finish_reason);
console.log("usage:", completion.usage.prompt_tokens, completion.usage.completion_tokens);

// Custom tools, and a choice among tools
const code = { type: "custom", custom: { name: "run_code", description: "Runs JavaScript." } };
const place = { type: "function", function: { name: "place" } };
for (const tool_choice of [
  { type: "custom", custom: { name: "run_code" } },
  { type: "allowed_tools", allowed_tools: { mode: "required", tools: [place] } },
]) {
  const called = await client.chat.completions.create({
    model: "model-sol",
    messages: [{ role: "user", content: "Call run_code with 'f(42)'." }],
    tools: [place, code],
    tool_choice,
  });
  for (const call of called.choices[0].message.tool_calls) {
    console.log("call:", call.type, call.custom?.name ?? call.function.name, call.custom?.input);
  }
}

// Streaming
const stream = await client.chat.completions.create({
  model: "model-breeze",
  messages: [{ role: "user", content: "Tell me about rivers." }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
console.log();

// Responses
const response = await client.responses.create({
  model: "model-terra",
  instructions: "You are terse.",
  input: "Reply with exactly: a response",
});
console.log("response:", response.status, response.output_text, response.usage.total_tokens);

const events = await client.responses.create({
  model: "model-terra",
  input: "Tell me about lakes.",
  stream: true,
});
for await (const event of events) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
  if (event.type === "response.completed") console.log("\nended:", event.response.status);
}

const calling = await client.responses.create({
  model: "model-terra",
  input: "Call run_code with 'f(42)'.",
  tools: [{ type: "custom", name: "run_code" }],
  tool_choice: { type: "custom", name: "run_code" },
  stream: true,
});
for await (const event of calling) {
  if (event.type === "response.custom_tool_call_input.delta") process.stdout.write(event.delta);
  if (event.type === "response.custom_tool_call_input.done") console.log("\ncustom input:", event.input);
}

// Stored responses
const stored = await client.responses.retrieve(response.id);
console.log("kept:", stored.id === response.id, stored.status, stored.output_text);
for await (const item of client.responses.inputItems.list(response.id, { order: "asc", limit: 10 })) {
  console.log("input item:", item.type, item.role, item.content[0].type, item.content[0].text);
}
await client.responses.delete(response.id);
try {
  await client.responses.retrieve(response.id);
} catch (error) {
  if (!(error instanceof NotFoundError)) throw error;
  console.log("gone:", error.status, error.code, error.param);
}
try {
  await client.responses.create({
    model: "model-terra",
    input: "And then?",
    previous_response_id: response.id,
  });
} catch (error) {
  if (!(error instanceof BadRequestError)) throw error;
  console.log("nothing to go on from:", error.status, error.code, error.param);
}

// Images
const image = await client.images.generate({
  model: "image_model_2",
  prompt: "a lighthouse at dusk",
  size: "256x256",
  response_format: "b64_json",
});
console.log("image:", image.data.length, image.data[0].b64_json.slice(0, 8));

// Models
for await (const model of client.models.list()) console.log("model:", model.id, model.owned_by);
const models = await client.models.list();
console.log("models:", models.data.length);
console.log("model:", (await client.models.retrieve("model-sol")).owned_by);

// Options of a call, response metadata, errors
const { data, response: answer } = await client.chat.completions
  .create(
    { model: "model-sol", messages: [{ role: "user", content: "Reply with exactly: quick" }] },
    { maxRetries: 0, signal: AbortSignal.timeout(10_000) },
  )
  .withResponse();
console.log("quick:", data.choices[0].message.content, answer.status, answer.headers.get("content-type"));
try {
  await client.chat.completions.create({
    model: "no-such-model",
    messages: [{ role: "user", content: "hi" }],
  });
} catch (error) {
  if (!(error instanceof NotFoundError)) throw error;
  console.log("refused:", error.status, error.code, error.param);
}
