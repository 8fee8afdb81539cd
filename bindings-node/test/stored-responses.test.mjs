// Stored responses and custom tools (ours) against the real gateway.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { AuthenticationError, BadRequestError, Client, InvalidRequestError, NotFoundError } from "gatewright";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const PROGRAM = process.env.GATEWRIGHT_BIN ?? join(REPOSITORY, "target/debug/gatewright");

let gateway;
let address;
let client;

before(async () => {
  gateway = spawn(PROGRAM, ["serve", "--json", "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { value } = await createInterface({ input: gateway.stdout })[Symbol.asyncIterator]().next();
  const { listening, key } = JSON.parse(value);
  address = listening;
  client = new Client({ baseUrl: listening, apiKey: key });
});

after(() => gateway?.kill());

test("a stored response is retrieved, listed and deleted", async () => {
  const first = await client.responses.create({ model: "model-terra", input: "Say apples" });
  const second = await client.responses.create({
    model: "model-terra",
    input: "Say pears",
    previous_response_id: first.id,
  });
  assert.deepEqual(await client.responses.retrieve(second.id), second);
  const page = await client.responses.inputItems.list(second.id, { order: "asc", limit: 2 });
  assert.deepEqual(
    page.data.map((item) => item.content[0].text),
    ["Say apples", "apples"],
  );
  assert.equal(page.has_more, true);
  const rest = await client.responses.inputItems.list(second.id, { order: "asc", after: page.last_id });
  assert.deepEqual([rest.data.length, rest.has_more], [1, false]);
  const deleted = await client.responses.delete(second.id);
  assert.deepEqual({ ...deleted }, { id: second.id, object: "response", deleted: true });
  await assert.rejects(client.responses.retrieve(second.id), (error) => {
    assert.ok(error instanceof NotFoundError);
    return error.param === "response_id";
  });
  const next = { model: "model-terra", input: "x", previous_response_id: second.id };
  await assert.rejects(client.responses.create(next), (error) => {
    assert.ok(error instanceof BadRequestError);
    return error.code === "previous_response_not_found";
  });
});

test("query parameter bounds apply here and at the gateway", async () => {
  const { id } = await client.responses.create({ model: "model-terra", input: "Say apples" });
  await assert.rejects(client.responses.inputItems.list(id, { limit: 101 }), (error) => {
    assert.ok(error instanceof BadRequestError);
    return error.param === "limit";
  });
  await assert.rejects(client.responses.inputItems.list(id, { limit: 101 }, { validate: true }), (error) => {
    assert.ok(error instanceof InvalidRequestError);
    return error.message.includes("the maximum is 100");
  });
});

test("a custom tool is called with text", async () => {
  const prompt = "Call run_code with 'f(42)'.";
  const completion = await client.chat.completions.create({
    model: "model-sol",
    messages: [{ role: "user", content: prompt }],
    tools: [{ type: "custom", custom: { name: "run_code" } }],
    tool_choice: { type: "custom", custom: { name: "run_code" } },
  });
  const [call] = completion.choices[0].message.tool_calls;
  assert.deepEqual([call.type, call.custom], ["custom", { name: "run_code", input: "f(42)" }]);
  const events = await client.responses.create({
    model: "model-sol",
    input: prompt,
    tools: [{ type: "custom", name: "run_code" }],
    tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "custom", name: "run_code" }] },
    stream: true,
  });
  let text = "";
  for await (const event of events) {
    if (event.type === "response.custom_tool_call_input.delta") text += event.delta;
  }
  const [item] = (await events.finalResponse()).output;
  assert.deepEqual([item.type, item.input, text], ["custom_tool_call", "f(42)", "f(42)"]);
});

test("a result without its call is rejected before it is sent", async () => {
  const messages = [{ role: "tool", tool_call_id: "call_1", content: "12 degrees" }];
  await assert.rejects(
    client.chat.completions.create({ model: "model-sol", messages }, { validate: true }),
    (error) => {
      assert.ok(error instanceof InvalidRequestError);
      return error.violations[0].pointer === "/messages/0/tool_call_id";
    },
  );
});

test("a wrong key is reported as clients expect, without repeating it", async () => {
  const wrong = new Client({ baseUrl: address, apiKey: "sk-canary-1" });
  await assert.rejects(wrong.models.list(), (error) => {
    assert.ok(error instanceof AuthenticationError);
    return error.message.includes("Incorrect API key provided") && !error.message.includes("canary");
  });
});
