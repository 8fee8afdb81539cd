// Tool loops: functions that a model calls.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { APIError, CancelledError, Client, Tool, ToolLoopError, tool } from "gatewright";
import { z } from "zod";

import { startGateway } from "./support/gateway.mjs";
import { answerWith, serve } from "./support/server.mjs";
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

/** Whether a conversation is the expected one; texts of results may be said in part. */
function assertConversation(found, expected, name) {
  assert.equal(found.length, expected.length, name);
  for (const [index, message] of expected.entries()) {
    const member = "output" in message ? "output" : "content";
    const text = message[member];
    const isPart = typeof text?.starts === "string";
    assert.deepEqual({ ...found[index], ...(isPart && { [member]: text }) }, message, name);
    if (!isPart) continue;
    assert.ok(found[index][member].startsWith(text.starts), found[index][member]);
    if (text.shows) assert.ok(found[index][member].includes(text.shows), found[index][member]);
  }
}

for (const [file, resource, conversation] of [
  ["chat", (client) => client.chat.completions, "messages"],
  ["responses", (client) => client.responses, "input"],
]) {
  test(`vectors: tool_loops/${file}.json`, async (t) => {
    for (const vector of readVectors(`tool_loops/${file}.json`).cases) {
      const { name, answers, max_rounds: maxRounds, tool_choice, tool_choices, error: expected } = vector;
      const { bodies, client } = await answering(t, answers);
      const params = { model: "m", [conversation]: vector[conversation], tools: TOOLS };
      if (tool_choice !== undefined) params.tool_choice = tool_choice;
      const told = [];
      const onMessage = (message) => told.push(message);
      const ran = resource(client).runTools(params, { maxRounds, onMessage });
      if (expected !== undefined) {
        const error = await ran.then(assert.fail, (error) => error);
        assert.ok(error instanceof ToolLoopError && error instanceof APIError, name);
        assert.ok(error.message.includes(expected.replace("max_rounds", "maxRounds")), error.message);
        assertConversation(error.messages, vector.conversation, name);
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
      assert.deepEqual(told, messages.slice(messages.length - told.length));
      if (tool_choices)
        assert.deepEqual(
          bodies.map((body) => body.tool_choice),
          tool_choices,
          name,
        );
      assert.deepEqual(bodies.at(-1)[conversation], messages.slice(0, bodies.at(-1)[conversation].length));
    }
  });
}

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

test("the events of each answer are told, if they are wanted", async () => {
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
  const told = [];
  const response = await gateway.responses.runTools(
    { model: "model-sol", input: "Oslo?", ...options },
    { onEvent: (event) => told.push(event.type) },
  );
  assert.equal(response.rounds, 1);
  assert.equal(told.filter((type) => type === "response.completed").length, 2);
});

test("tools are sent with their name, description and JSON Schema", async (t) => {
  const { bodies, client } = await answering(t, [LAST]);
  const bare = tool({ name: "what time?", run: () => "now" });
  await client.chat.completions.runTools({ ...PROMPT, tools: [TOOLS[0], bare] });
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
