// Tool loops: functions that a model calls.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { APIError, CancelledError, Client, DecodeError, Tool, ToolLoopError, tool } from "gatewright";
import { z } from "zod";

import { startGateway } from "./support/gateway.mjs";
import { answerWith, beginEvents, sendEvents, serve } from "./support/server.mjs";
import { readVectors } from "./support/vectors.mjs";

const TOOLS = [
  tool({
    name: "weather",
    description: "The weather of a place.",
    parameters: z.strictObject({ place: z.string(), days: z.number().int().default(1) }),
    run: ({ place, days }) => `sunny in ${place} for ${days} days`,
  }),
  tool({ name: "add", parameters: z.strictObject({ a: z.int(), b: z.int() }), run: ({ a, b }) => a + b }),
  tool({ name: "report", parameters: z.strictObject({}), run: () => ({ oslo: ["sunny", 21], ø: null }) }),
  tool({
    name: "fail",
    parameters: z.strictObject({ reason: z.string() }),
    run: ({ reason }) => Promise.reject(new Error(reason)),
  }),
];
const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "How is the weather?" }] };

const ends = [];
let gateway;
before(async () => {
  gateway = new Client(await startGateway({ after: (end) => ends.push(end) }));
});
after(() => {
  for (const end of ends) end();
});

/** A client of a server that gives these answers, one for each request, and the bodies of the requests. */
async function answering(t, answers) {
  const bodies = [];
  const server = await serve(t, ({ body }, socket) => {
    answerWith(socket, 200, answers[bodies.length]);
    bodies.push(JSON.parse(body));
  });
  return { bodies, client: new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 }) };
}

function calling(...calls) {
  const tool_calls = calls.map(([name, args], index) => ({
    id: `t${index}`,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  }));
  return answer({ role: "assistant", content: null, tool_calls }, "tool_calls");
}

const answer = (message, finish_reason = "stop") => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message, finish_reason }],
});
const LAST = answer({ role: "assistant", content: "Sunny." });

/** A value with each text that `expected` says in part replaced by what that says, if it is so. */
function inPart(found, expected) {
  if (typeof found === "string" && typeof expected?.starts === "string") {
    assert.ok(found.startsWith(expected.starts), found);
    assert.ok(found.includes(expected.shows ?? ""), found);
    return expected;
  }
  if (typeof found !== "object" || found === null) return found;
  if (Array.isArray(found)) return found.map((value, index) => inPart(value, expected?.[index]));
  return Object.fromEntries(
    Object.entries(found).map(([name, value]) => [name, inPart(value, expected?.[name])]),
  );
}

const assertConversation = (found, expected, name) =>
  assert.deepEqual(inPart(found, expected), expected, name);

const PROTOCOLS = {
  chat: { resource: (client) => client.chat.completions, conversation: "messages", choice: "tool_choice" },
  responses: { resource: (client) => client.responses, conversation: "input", choice: "tool_choice" },
  messages: { resource: (client) => client.messages, conversation: "messages", choice: "tool_choice" },
  native: { resource: (client) => client.native, conversation: "contents", choice: "toolConfig" },
};

/** Runs the loop of a vector. */
function runVector(protocol, vector, client, options) {
  const { resource, conversation, choice } = PROTOCOLS[protocol];
  const params = { model: "m", [conversation]: vector[conversation], tools: TOOLS };
  if (protocol === "messages") params.max_tokens = 9;
  if (vector.tool_choice !== undefined) params[choice] = vector.tool_choice;
  return resource(client).runTools(params, { maxRounds: vector.max_rounds, ...options });
}

for (const [protocol, { conversation, choice }] of Object.entries(PROTOCOLS)) {
  test(`vectors: tool_loops/${protocol}.json`, async (t) => {
    for (const vector of readVectors(`tool_loops/${protocol}.json`).cases) {
      const { name, answers, tool_choices, error: expected } = vector;
      const { bodies, client } = await answering(t, answers);
      const added = [];
      const ran = runVector(protocol, vector, client, { onMessage: (message) => added.push(message) });
      const started = typeof vector[conversation] === "string" ? 1 : vector[conversation].length;
      if (expected !== undefined) {
        const error = await ran.then(assert.fail, (error) => error);
        assert.ok(error instanceof ToolLoopError && error instanceof APIError, `${name}: ${error}`);
        assert.ok(error.message.includes(expected.replace("max_rounds", "maxRounds")), error.message);
        assert.equal(error.code, vector.code, name);
        assertConversation(error.messages, vector.conversation, name);
        assert.deepEqual(added, error.messages.slice(started));
        assert.deepEqual(error.answer, answers.at(-1));
        assert.match(error.stack, /tools\.test\.mjs/);
        continue;
      }
      const { messages, text, rounds, completion, response } = await ran;
      assertConversation(messages, vector.conversation, name);
      assert.deepEqual([text, rounds], [vector.text, vector.rounds], name);
      assert.deepEqual(completion, answers.at(-1));
      assert.equal(response, completion);
      assert.equal(bodies.length, answers.length);
      assert.deepEqual(added, messages.slice(started));
      if (tool_choices)
        assert.deepEqual(
          bodies.map((body) => body[choice]),
          tool_choices,
          name,
        );
      assert.deepEqual(bodies.at(-1)[conversation], messages.slice(0, bodies.at(-1)[conversation].length));
    }
  });
}

test("vectors: tool_loops/streams.json", async (t) => {
  for (const vector of readVectors("tool_loops/streams.json").cases) {
    const { name, protocol, streams, events, text, rounds, conversation } = vector;
    let calls = 0;
    const server = await serve(t, (_, socket) => {
      beginEvents(socket);
      sendEvents(socket, ...streams[calls]);
      socket.end();
      calls += 1;
    });
    const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
    const emitted = [];
    const onEvent = (event) => emitted.push(event);
    const run = await runVector(protocol, vector, client, { onEvent });
    assertConversation(run.messages, conversation, name);
    assert.deepEqual([run.text, run.rounds, calls], [text, rounds, streams.length], name);
    const found = emitted.filter(({ type }) => type !== "chunk");
    assert.equal(found.length, events.length, name);
    for (const [index, expected] of events.entries()) {
      for (const [member, value] of Object.entries(expected)) {
        assert.deepEqual(found[index][member], value, `${name}: ${index} ${member}`);
      }
    }
  }
});

test("a gateway's model calls a tool that it must call", async () => {
  const options = { tools: TOOLS, tool_choice: "required" };
  const chat = await gateway.chat.completions.runTools({ ...PROMPT, ...options });
  assert.ok(chat.rounds >= 1);
  assert.ok(chat.messages.some(({ role }) => role === "tool"));
  const next = [...chat.messages, { role: "user", content: "And tomorrow?" }];
  assert.equal((await gateway.chat.completions.create({ ...PROMPT, messages: next })).choices.length, 1);
  const run = await gateway.responses.runTools({ model: "model-sol", input: "Hi", ...options });
  assert.ok(run.rounds >= 1);
  assert.equal(run.text, run.response.output_text);
});

test("the events of each answer are passed to onEvent", async () => {
  const options = { tools: TOOLS, tool_choice: "required" };
  const events = [];
  const onEvent = async (event) => events.push(event);
  const run = await gateway.chat.completions.runTools({ ...PROMPT, ...options }, { onEvent });
  const done = events.filter(({ type }) => type.endsWith(".done"));
  assert.deepEqual(
    done.map(({ type }) => type),
    ["tool_calls.function.arguments.done", "content.done"],
  );
  assert.equal(done.at(-1).content, run.text);
  const types = [];
  const response = await gateway.responses.runTools(
    { model: "model-sol", input: "Oslo?", ...options },
    { onEvent: (event) => types.push(event.type) },
  );
  assert.equal(response.rounds, 1);
  assert.equal(types.filter((type) => type === "response.completed").length, 2);
});

test("a gateway's model calls tools in messages and native", async () => {
  const seen = [];
  const onEvent = (event) => seen.push(event);
  const question = "How is the weather in Oslo?";
  const run = await gateway.messages.runTools(
    {
      model: "model-breeze",
      max_tokens: 256,
      messages: [{ role: "user", content: question }],
      tools: TOOLS,
      tool_choice: { type: "any" },
    },
    { onEvent },
  );
  assert.deepEqual(
    run.messages.map(({ role }) => role),
    ["user", "assistant", "user", "assistant"],
  );
  assert.equal(run.text, run.completion.text);
  assert.equal(seen.filter(({ type }) => type === "message_stop").length, 2);
  const content = await gateway.native.runTools(
    {
      model: "model-terra",
      contents: [{ parts: [{ text: question }] }],
      tools: TOOLS,
      toolConfig: { functionCallingConfig: { mode: "ANY" } },
    },
    { onEvent },
  );
  assert.deepEqual([content.rounds, content.messages.length], [1, 4]);
  assert.ok(content.text);
  assert.ok(seen.at(-1).candidates);
});

test("tools are sent with their name, description and JSON Schema", async (t) => {
  const message = { role: "assistant", type: "message", content: [], stop_reason: "end_turn" };
  const { bodies, client } = await answering(t, [LAST, message, { candidates: [{}] }]);
  const bare = tool({ name: "what time?", run: () => "now" });
  await client.chat.completions.runTools({ ...PROMPT, tools: [TOOLS[0], bare] });
  await client.messages.runTools({ model: "m", max_tokens: 9, messages: [], tools: [bare] });
  await client.native.runTools({ model: "m", contents: [], tools: [bare] });
  const described = { type: "object", properties: {}, additionalProperties: false };
  assert.deepEqual(bodies[1].tools, [{ name: "what_time_", input_schema: described }]);
  const declared = { name: "what_time_", parametersJsonSchema: described };
  assert.deepEqual(bodies[2].tools, [{ functionDeclarations: [declared] }]);
  const [weather, time] = bodies[0].tools;
  assert.equal(weather.type, "function");
  assert.equal(weather.function.description, "The weather of a place.");
  assert.deepEqual(weather.function.parameters.required, ["place"]);
  assert.deepEqual(time.function, {
    name: "what_time_",
    parameters: { type: "object", properties: {}, additionalProperties: false },
  });
});

test("the calls of a round run at the same time", async (t) => {
  const { client } = await answering(t, [calling(["wait", {}], ["wait", {}]), LAST]);
  let waiting = 0;
  let release;
  const both = new Promise((resolve) => {
    release = resolve;
  });
  const wait = tool({
    name: "wait",
    run: async (_, { id }) => {
      waiting += 1;
      if (waiting === 2) release();
      await both;
      return id;
    },
  });
  const { messages } = await client.chat.completions.runTools({ ...PROMPT, tools: [wait] });
  assert.deepEqual(
    messages.filter(({ role }) => role === "tool").map(({ content }) => content),
    ["t0", "t1"],
  );
});

test("with raiseErrors, the error of a tool ends the loop", async (t) => {
  const { client } = await answering(t, [
    calling(["fail", { reason: "no signal" }]),
    calling(["add", { a: "x" }]),
  ]);
  const params = { ...PROMPT, tools: TOOLS };
  await assert.rejects(client.chat.completions.runTools(params, { raiseErrors: true }), /^Error: no signal$/);
  await assert.rejects(
    client.chat.completions.runTools(params, { raiseErrors: true }),
    /TypeError: the arguments do not fit: \$\.a: /,
  );
});

test("a tool with a JSON Schema gets the object as it is", async (t) => {
  const { client } = await answering(t, [calling(["echo", { place: "Oslo" }], ["echo", [1]]), LAST]);
  const echo = tool({ name: "echo", parameters: { type: "object" }, run: (given) => given });
  const { messages } = await client.chat.completions.runTools({ ...PROMPT, tools: [echo] });
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  assert.deepEqual(results, [
    '{"place":"Oslo"}',
    "error: the arguments do not fit: $: they must be an object",
  ]);
});

test("a signal ends the loop while a tool runs, and the tool sees it", async (t) => {
  const { client } = await answering(t, [calling(["hang", {}])]);
  const controller = new AbortController();
  let seen;
  const hang = tool({
    name: "hang",
    run: (_, { signal }) => {
      seen = signal;
      controller.abort(new Error("enough"));
      return new Promise(() => {});
    },
  });
  const { signal } = controller;
  const error = await client.chat.completions
    .runTools({ ...PROMPT, tools: [hang] }, { signal })
    .then(assert.fail, (error) => error);
  assert.ok(error instanceof CancelledError);
  assert.equal(error.cause.message, "enough");
  assert.equal(seen, signal);
});

test("what cannot be run is refused before anything is sent", async (t) => {
  const { bodies, client } = await answering(t, []);
  const run = (tools, options) => client.chat.completions.runTools({ ...PROMPT, tools }, options);
  await assert.rejects(run([{ name: "f", run: () => 1 }]), /make each of tools with tool\(/);
  await assert.rejects(run([TOOLS[0], TOOLS[0]]), /two tools are called weather/);
  await assert.rejects(run(TOOLS, { maxRounds: 0 }), /maxRounds must be a whole number from 1, not 0/);
  await assert.rejects(run(TOOLS, { maxRouns: 1 }), /no option is called maxRouns/);
  await assert.rejects(
    client.chat.completions.runTools({ ...PROMPT, tools: [], stream: true }),
    /it does not stream/,
  );
  assert.throws(() => tool({ name: "f" }), /tool f: run must be a function/);
  assert.ok(TOOLS[0] instanceof Tool);
  assert.equal(bodies.length, 0);
});

test("an answer with a member of an unexpected type is a DecodeError that says where", async (t) => {
  const named = { id: "t", type: "function", function: { name: {}, arguments: "{}" } };
  const chat = (client) => client.chat.completions.runTools({ ...PROMPT, tools: TOOLS });
  const responses = (client) => client.responses.runTools({ model: "m", input: "x", tools: TOOLS });
  const messages = (client) => client.messages.runTools({ ...PROMPT, max_tokens: 9, tools: TOOLS });
  const native = (client) =>
    client.native.runTools({ model: "m", contents: [{ parts: [{ text: "x" }] }], tools: TOOLS });
  for (const [run, answer, place] of [
    [chat, { choices: {} }, "/choices is an object, not an array"],
    [chat, { choices: [null] }, "/choices/0 is null, not an object"],
    [chat, { choices: [{ finish_reason: "stop" }] }, "/choices/0/message is missing, not an object"],
    [chat, { choices: [{ message: { tool_calls: 7 } }] }, "/choices/0/message/tool_calls is a number"],
    [chat, { choices: [{ message: { tool_calls: [named] } }] }, "/tool_calls/0/function/name is an object"],
    [chat, { choices: [{ message: { content: {} } }] }, "/choices/0/message/content is an object"],
    [chat, { choices: [{ message: { content: [7] } }] }, "/choices/0/message/content/0 is a number"],
    [responses, { output: [], output_text: {} }, "/output_text is an object"],
    [messages, { content: [], text: [] }, "/text is an array"],
    [responses, { status: "completed", output: "none" }, "/output is a string, not an array"],
    [responses, { output: [{ type: "function_call", name: [] }] }, "/output/0/name is an array"],
    [messages, { content: [7] }, "/content/0 is a number, not an object"],
    [messages, { content: [{ type: "tool_use", id: {} }] }, "/content/0/id is an object"],
    [native, { candidates: [{ content: { parts: "x" } }] }, "/candidates/0/content/parts is a string"],
    [native, { candidates: [{ content: { parts: [{ functionCall: [] }] } }] }, "/functionCall is an array"],
    [native, { candidates: [{ content: { parts: [{ text: {} }] } }] }, "/parts/0/text is an object"],
  ]) {
    const { client } = await answering(t, [answer]);
    const error = await run(client).then(assert.fail, (error) => error);
    assert.ok(error instanceof DecodeError, `${place}: ${error}`);
    assert.ok(error.message.includes(place), error.message);
    assert.deepEqual(error.body, answer);
  }
});

test("vectors: tool_loops/keys.json: each round of a loop has an idempotency key of its own", async (t) => {
  for (const { name, keys } of readVectors("tool_loops/keys.json").cases) {
    const sent = [];
    const server = await serve(t, ({ headers }, socket) => {
      sent.push(headers["idempotency-key"]);
      answerWith(socket, 200, sent.length < keys.length ? calling(["report", {}]) : LAST);
    });
    const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
    await client.chat.completions.runTools({ ...PROMPT, tools: TOOLS }, { idempotencyKey: keys[0] });
    assert.deepEqual(sent, keys, name);
  }
});

test("an answer of parts has their texts", async (t) => {
  const parts = [{ type: "text", text: "Sun" }, { type: "other" }, { type: "text", text: "ny." }];
  const { client } = await answering(t, [answer({ role: "assistant", content: parts })]);
  const { text } = await client.chat.completions.runTools({ ...PROMPT, tools: TOOLS });
  assert.equal(text, "Sunny.");
});
