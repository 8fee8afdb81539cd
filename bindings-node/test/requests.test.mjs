// The rules for requests, before sending: null, limits on reported violations, endpoints, webhooks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, InvalidRequestError } from "gatewright";

import { answerWith, serve } from "./support/server.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi" }] };

async function checkedClient(t) {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, {}));
  return [server, new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, validate: true })];
}

const refusal = async (call) => {
  const error = await call.then(assert.fail, (error) => error);
  assert.ok(error instanceof InvalidRequestError, `${error}`);
  return error;
};

test("null for an optional member means absent, and is sent unchanged (2.1, 2.4, 2.5, 2.8)", async (t) => {
  const [server, client] = await checkedClient(t);
  const message = { role: "user", content: "Hi", name: null, tool_calls: null };
  const chat = {
    model: "model-sol",
    messages: [message],
    tools: null,
    tool_choice: null,
    response_format: null,
  };
  await client.chat.completions.create(chat);
  await client.responses.create({
    model: "model-sol",
    input: "Hi",
    tools: null,
    tool_choice: null,
    text: null,
  });
  const parts = [{ text: "Hi", thought: null }];
  await client.native.generateContent({ model: "model-sol", contents: [{ role: null, parts }], tools: null });
  await client.images.generate({
    model: "image_model_2",
    prompt: "a kite",
    quality: null,
    style: null,
    n: null,
  });
  assert.equal(server.requests.length, 4);
  assert.deepEqual(JSON.parse(server.requests[0].body), chat);
});

test("at most 100 violations are listed, and the message mentions more (7 rule 4)", async (t) => {
  const [server, client] = await checkedClient(t);
  const error = await refusal(
    client.chat.completions.create({ ...PROMPT, messages: new Array(20_000).fill(0) }),
  );
  assert.equal(error.violations.length, 100);
  assert.match(error.message, /at least 101 rules are broken, the first 20: /);
  assert.ok(error.message.length < 4_000);
  const large = "x".repeat(1_000_000);
  const repeated = await refusal(
    client.chat.completions.create({ ...PROMPT, messages: [{ role: large, content: "" }] }),
  );
  assert.ok(repeated.message.length < 1_000);
  assert.equal(server.requests.length, 0);
});

test("a model of another endpoint is rejected with the endpoint to use (4 rule 1)", async (t) => {
  const [server, client] = await checkedClient(t);
  const family = await refusal(client.responses.create({ model: "model-breeze", input: "Hi" }));
  assert.match(family.message, /use POST \/v1\/chat\/completions/);
  const kind = await refusal(client.videos.generations.create({ model: "image_model_2", prompt: "x" }));
  assert.match(kind.message, /use POST \/v1\/images\/generations/);
  assert.deepEqual([kind.violations[0].pointer, kind.violations[0].rule], ["/model", "unsupported"]);
  assert.equal(server.requests.length, 0);
});

test("an internal webhook is rejected before sending (2.6, 6)", async () => {
  const client = new Client({
    baseUrl: "https://gateway.example",
    apiKey: "sk-test",
    maxRetries: 0,
    validate: true,
  });
  const video = { model: "video_model_1", prompt: "x", webhook_url: "https://10.0.0.1/" };
  const error = await refusal(client.videos.generations.create(video));
  assert.match(error.message, /not public/);
  assert.equal(error.violations[0].section, "ours");
});
