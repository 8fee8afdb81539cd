// Events and answers whose members are not what the protocols say: each is an error of ours, or what the core makes of it;
// and none costs more than its own length (3).

import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatCompletionEvents, Client, DecodeError, MessageEvents } from "gatewright";

import { answerWith, beginEvents, sendEvents, serve } from "./support/server.mjs";

const PROMPT = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const FORMAT = { type: "object", properties: {} };
const MESSAGE = {
  id: "m",
  type: "message",
  role: "assistant",
  model: "m",
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};
const START = { type: "message_start", message: MESSAGE };
const STOP = { type: "message_stop" };

const OPEN = {
  messages: (client) => client.messages.stream({ ...PROMPT, max_tokens: 1 }),
  chat: (client) => client.chat.completions.stream(PROMPT),
  responses: (client) => client.responses.stream({ model: "m", input: "Hi" }),
};

/** A client of a server that streams what `served` holds, and then nothing more. */
async function streaming(t) {
  const served = { events: [] };
  const server = await serve(t, (_, socket) => {
    beginEvents(socket);
    sendEvents(socket, ...served.events);
    socket.end();
  });
  return { served, client: new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 }) };
}

async function collect(source) {
  const values = [];
  for await (const value of source) values.push(value);
  return values;
}

const block = (index, content_block) => ({ type: "content_block_start", index, content_block });
const piece = (index, delta) => ({ type: "content_block_delta", index, delta });
const choice = (members) => ({ id: "c", object: "chat.completion.chunk", choices: [members] });
const call = (members) => choice({ index: 0, delta: { tool_calls: [members] } });
const textDelta = { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "a" };

/** The protocol, an event, and what the error says of it. */
const UNEXPECTED = [
  ["chat", { id: "c", choices: 5 }, "/choices is a number, not an array"],
  ["chat", { id: "c", choices: [{ index: 0, delta: {} }, 5] }, "/choices/1 is a number, not an object"],
  ["chat", choice({ index: {}, delta: {} }), "/choices/0/index is an object, not an integer below 2^53"],
  ["chat", choice({ index: 0, delta: "a" }), "/choices/0/delta is a string, not an object"],
  [
    "chat",
    choice({ index: 0, delta: { content: {} } }),
    "/choices/0/delta/content is an object, not a string",
  ],
  [
    "chat",
    choice({ index: 0, delta: { refusal: {} } }),
    "/choices/0/delta/refusal is an object, not a string",
  ],
  ["chat", choice({ index: 0, delta: {}, logprobs: 5 }), "/choices/0/logprobs is a number, not an object"],
  [
    "chat",
    choice({ index: 0, delta: {}, logprobs: { content: "ab" } }),
    "/choices/0/logprobs/content is a string, not an array",
  ],
  [
    "chat",
    choice({ index: 0, delta: { tool_calls: 5 } }),
    "/choices/0/delta/tool_calls is a number, not an array",
  ],
  ["chat", call(5), "/choices/0/delta/tool_calls/0 is a number, not an object"],
  ["chat", call({ function: 5 }), "/choices/0/delta/tool_calls/0/function is a number, not an object"],
  [
    "chat",
    call({ index: [], function: {} }),
    "/choices/0/delta/tool_calls/0/index is an array, not an integer below 2^53",
  ],
  [
    "chat",
    call({ function: { name: {} } }),
    "/choices/0/delta/tool_calls/0/function/name is an object, not a string",
  ],
  ["responses", { ...textDelta, delta: { toString: 1 } }, "/delta is an object, not a string"],
  [
    "responses",
    { ...textDelta, content_index: "x" },
    "/content_index is a string, not an integer below 2^53",
  ],
  [
    "responses",
    { ...textDelta, output_index: { toString: 1 } },
    "/output_index is an object, not an integer below 2^53",
  ],
  [
    "responses",
    { ...textDelta, type: "response.function_call_arguments.delta", delta: {} },
    "/delta is an object, not a string",
  ],
];
const OPERATIONS = {
  chat: ["chat.completions.stream", "create_chat_completion"],
  responses: ["responses.stream", "create_response"],
};

test("a member of an unexpected type is a DecodeError that says where it is", async (t) => {
  const { served, client } = await streaming(t);
  for (const [protocol, event, problem] of UNEXPECTED) {
    const [method, operation] = OPERATIONS[protocol];
    served.events = [event];
    const error = await collect(OPEN[protocol](client)).then(assert.fail, (error) => error);
    assert.ok(error instanceof DecodeError, `${problem}: ${error}`);
    assert.equal(
      error.message,
      `${method}: an event of the stream has a member of an unexpected type: ${problem}`,
    );
    assert.deepEqual([error.operation, error.status, error.requestId], [operation, 200, "req_stream"]);
    assert.equal(error.body.type, event.type);
    assert.match(error.stack, /hostile-events\.test\.mjs/);
  }
});

test("listeners and promises of the end get that error, too", async (t) => {
  const { served, client } = await streaming(t);
  served.events = [{ id: "c", choices: 5 }];
  const errors = [];
  const reader = OPEN.chat(client).on("error", (error) => errors.push(error));
  await assert.rejects(reader.done(), DecodeError);
  assert.equal(errors.length, 1);
});

test("what is missing, or null, is no error", async (t) => {
  const { served, client } = await streaming(t);
  for (const [protocol, events] of [
    ["messages", [{ type: "message_start" }, block(null, null), piece(), piece(null, {}), STOP]],
    ["messages", [piece(0, { text: "a" }), { type: "content_block_stop" }, { type: "message_delta" }, STOP]],
    ["messages", [piece(0, { type: "citations_delta", citation: null }), STOP]],
    [
      "chat",
      [choice({}), choice({ delta: null, logprobs: null }), call({}), call({ function: {} }), "[DONE]"],
    ],
  ]) {
    served.events = events;
    const found = await collect(OPEN[protocol](client));
    assert.ok(found.length >= events.filter((event) => event !== "[DONE]").length);
  }
});

/** A JSON text, which can have a member called `__proto__`, as an event. */
const forged = JSON.parse(
  '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "toString": "a"}',
);

test("the message so far is the one that the core makes of the same events", async (t) => {
  const { served, client } = await streaming(t);
  const odd = (index, members) => piece(index, { type: "odd_delta", ...members });
  const streams = {
    "members of unexpected types": [
      block([1], { type: "text", text: "a" }),
      block("first", { type: "text", text: "b" }),
      block(2 ** 60, { type: "text", text: "c" }),
      block(7, "abc"),
      piece(0, ["a"]),
      piece(true, { type: "text_delta", text: "d" }),
      piece(0, { type: {}, text: "e" }),
      piece(0, { type: "text_delta", text: { toString: 1 } }),
      piece(0, { type: "thinking_delta", thinking: {} }),
      piece(0, { type: "signature_delta", signature: {} }),
      piece(1, { type: "input_json_delta", partial_json: { toString: 1 } }),
      { type: "content_block_stop", index: {} },
      { type: "message_delta", delta: "x" },
      { type: "message_delta", delta: {}, usage: [1] },
    ],
    "indices that are negative": [
      block(-1, { type: "text", text: "a" }),
      block(-7, { type: "text", text: "b" }),
      piece(-1, { type: "text_delta", text: "c" }),
    ],
    "blocks out of order, one of them twice": [
      block(5, { type: "text", text: "f" }),
      block(2, { type: "text", text: "c" }),
      block(9, { type: "text", text: "i" }),
      block(2, { type: "text", text: "C" }),
      piece(0, { type: "text_delta", text: "a" }),
      piece(null, { type: "text_delta", text: "!" }),
    ],
    "the end of a block that never began": [
      { type: "content_block_stop", index: 3 },
      { type: "content_block_stop" },
    ],
    "a block without itself": [{ type: "content_block_start", index: 1 }, odd(1, { a: "b" })],
    "members of members": [
      block(0, { type: "odd", a: { text: "x", list: [1], deep: { n: 1 } }, list: [{ index: 0, text: "p" }] }),
      odd(0, { a: { text: "y", list: [2], deep: { m: 2, n: null } }, list: [{ index: 0, text: "q" }, "r"] }),
      odd(0, { a: { text: ["not this"], id: "one" }, list: [{ index: 0, text: "s", deep: { n: 1 } }] }),
      odd(0, { a: { id: "two", deep: 5 }, list: [{ index: 0, deep: { n: 2 } }, { index: 1 }] }),
    ],
    "names that every object inherits": [
      block(0, { type: "odd", ...forged }),
      odd(0, { ...forged, valueOf: "b" }),
      odd(0, { ...forged }),
      { type: "message_delta", delta: { ...forged }, usage: { ...forged } },
      { type: "message_delta", delta: {}, usage: { ...forged }, ...forged },
      piece(1, { type: "constructor", text: "a" }),
    ],
    "an input that goes on after its end": [
      block(0, { type: "tool_use", id: "i", name: "n", input: { kept: true } }),
      piece(0, { type: "input_json_delta", partial_json: " " }),
      block(1, { type: "tool_use", id: "j", name: "n", input: { replaced: true } }),
      piece(1, { type: "input_json_delta", partial_json: '{"a"' }),
      { type: "content_block_stop", index: 1 },
      odd(1, { input: { ignored: true } }),
      piece(1, { type: "input_json_delta", partial_json: ": 1}" }),
      { type: "content_block_stop", index: 1 },
    ],
    "a message that calls other members its content and its usage": [
      block(0, { type: "text", text: "a" }),
      {
        type: "message_delta",
        delta: { content: [5] },
        usage: { output_tokens: 7 },
        content: "b",
        usages: 1,
      },
      {
        type: "message_delta",
        delta: { usage: { input_tokens: 8, output_tokens: 1 } },
        usage: { output_tokens: 9 },
      },
    ],
    "a message that begins again": [
      block(0, { type: "text", text: "a" }),
      START,
      block(0, { type: "text", text: "b" }),
    ],
  };
  for (const [name, events] of Object.entries(streams)) {
    served.events = [START, ...events, STOP];
    const reader = OPEN.messages(client);
    const found = [];
    const arrived = [];
    for await (const event of reader) {
      found.push(event);
      arrived.push(JSON.stringify(event));
    }
    assert.deepEqual(
      JSON.parse(JSON.stringify(found.at(-1).message)),
      JSON.parse(JSON.stringify(await reader.finalMessage())),
      name,
    );
    assert.deepEqual(
      found.map((event) => JSON.stringify(event)),
      arrived,
      `${name}: the events have changed`,
    );
  }
  assert.equal({}.polluted, undefined);
  assert.deepEqual(Object.keys(Object.prototype), []);
});

test("arguments that are an object are their text, as for the core", async (t) => {
  const { served, client } = await streaming(t);
  served.events = [call({ index: 0, id: "i", function: { name: "n", arguments: { a: 1 } } }), "[DONE]"];
  const reader = OPEN.chat(client);
  const events = await collect(reader);
  const { choices } = await reader.finalChatCompletion();
  assert.equal(events.at(-1).arguments, choices[0].message.tool_calls[0].function.arguments);
  assert.deepEqual(events.at(-1).parsed_arguments, { a: 1 });
});

test("the beginning of an input has a value within the bounds of the core", async () => {
  const json = (partial_json) => piece(0, { type: "input_json_delta", partial_json });
  // MAX_TEXT_BYTES, MAX_DEPTH, MAX_VALUES and MAX_WORD_BYTES in core/src/stream/json_prefix.rs.
  const [bytes, depth, values, word] = [8 * 1024 * 1024, 128, 100_000, 1024];
  for (const [within, beyond] of [
    [`"${"x".repeat(bytes - 1)}`, "x"],
    [`"${"é".repeat(bytes / 2 - 1)}`, "é"],
    ["[".repeat(depth), "["],
    // The list is a value, too, and a number is one once it is complete.
    [`[${"0,".repeat(values - 1)}0`, ","],
    [`[${'"",'.repeat(values - 1)}`, '"'],
    [`[${"{},".repeat(values - 1)}`, "{"],
    [`[0,${"1".repeat(word)}`, "1"],
  ]) {
    const events = [
      block(0, { type: "tool_use", id: "i", name: "n" }),
      json(within),
      json(beyond),
      json(" "),
    ];
    const snapshots = [];
    for await (const event of reading(MessageEvents, events)) {
      if (event.type === "input_json") snapshots.push(event.snapshot);
    }
    assert.notDeepEqual(snapshots.shift(), {}, within.slice(0, 9));
    assert.deepEqual(snapshots, [{}, {}], within.slice(0, 9));
  }
});

test("members that are nested deep are merged without a stack that grows with them", async () => {
  const deep = () => {
    let members = {};
    for (let depth = 0; depth < 50_000; depth += 1) members = { a: members };
    return piece(0, { type: "odd_delta", members });
  };
  assert.equal((await collect(reading(MessageEvents, [deep(), deep()]))).length, 2);
});

/** A reader of a stream of these events. */
function reading(Events, events) {
  const stream = {
    async *[Symbol.asyncIterator]() {
      yield* events;
    },
  };
  return new Events(Promise.resolve(stream), undefined, undefined);
}

/** The first events, and others that are made as often as it says. */
function* repeated(times, first, made) {
  yield* first;
  for (let time = 0; time < times; time += 1) yield made(time);
}

const odd = (members) => piece(0, { type: "odd_delta", ...members });
const text = { type: "text", text: "" };
const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, n]));
const blocks = Array.from({ length: 20_000 }, (_, n) => block(n, text));

/** Each is read in seconds, and would take minutes if an event cost as much as all that have arrived before. */
const GROWING = {
  "descending indices": repeated(250_000, [], (n) => block(250_000 - n, text)),
  "a block that begins again": repeated(100_000, blocks, () => block(0, text)),
  "a list that grows": repeated(150_000, [block(0, { type: "odd", list: [] })], (n) => odd({ list: [n] })),
  "an object that grows": repeated(30_000, [block(0, { type: "odd", of: {} })], (n) =>
    odd({ of: { [n]: n } }),
  ),
  "a usage that grows": repeated(30_000, [START], (n) => ({
    type: "message_delta",
    usage: { [`k${n}`]: n },
  })),
  "a block of many members": repeated(20_000, [block(0, wide)], () => odd({ text: "a" })),
  "a kind of many suffixes": [piece(0, { type: `${"_delta".repeat(300_000)}x` })],
  "ends of blocks that never began": repeated(50_000, blocks, (n) => ({
    type: "content_block_stop",
    index: -n,
  })),
  "ends of the message": repeated(50_000, blocks, () => STOP),
};
for (const [name, events] of Object.entries(GROWING)) {
  test(`an event costs as much as its own text, however much has arrived before: ${name}`, async () => {
    let count = 0;
    for await (const _ of reading(MessageEvents, events)) count += 1;
    assert.ok(count > 0);
  });
}

test("an input or arguments are not parsed again for each of their events", async (t) => {
  const parse = t.mock.method(JSON, "parse");
  const input = (partial_json) => piece(0, { type: "input_json_delta", partial_json });
  const message = [block(0, { type: "tool_use", id: "i", name: "n", input: {} }), input('{"a": [')];
  const chunks = [];
  for (let time = 0; time < 1000; time += 1) {
    const end = { type: "content_block_stop", index: 0 };
    message.push(input("1,"), piece(0, { type: "odd_delta", input: { a: "b" } }), end, STOP);
    for (const index of [0, 1]) chunks.push(call({ index, function: { name: "n", arguments: "[" } }));
  }
  for await (const _ of reading(MessageEvents, message));
  // At its first end.
  assert.equal(parse.mock.callCount(), 1);
  const events = await collect(reading(ChatCompletionEvents, chunks));
  assert.equal(parse.mock.callCount(), 1);
  assert.equal(events.filter(({ type }) => type === "tool_calls.function.arguments.done").length, 2000);
  assert.equal(events.at(-1).parsed_arguments, null);
});

test("an answer with a member of an unexpected type is a DecodeError of parse", async (t) => {
  let answer;
  const server = await serve(t, (_, socket) => answerWith(socket, 200, answer));
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
  const parse = {
    chat: () => client.chat.completions.parse({ ...PROMPT, response_format: FORMAT }),
    responses: () => client.responses.parse({ model: "m", input: "Hi", text: { format: FORMAT } }),
    messages: () => client.messages.parse({ ...PROMPT, max_tokens: 1, output_config: { format: FORMAT } }),
    native: () =>
      client.native.parse({ model: "m", contents: [], generationConfig: { responseJsonSchema: FORMAT } }),
  };
  const message = (members) => ({ choices: [{ index: 0, message: { role: "assistant", ...members } }] });
  const item = (content) => ({
    status: "completed",
    output: [{ type: "reasoning" }, { type: "message", content }],
  });
  const parts = (all) => ({ candidates: [{ content: { parts: all } }] });
  for (const [protocol, given, problem] of [
    ["chat", { choices: 5 }, "/choices is a number, not an array"],
    ["chat", { choices: [null] }, "/choices/0 is null, not an object"],
    ["chat", { choices: [{}] }, "/choices/0/message is missing, not an object"],
    ["chat", message({ content: { toString: 1 } }), "/choices/0/message/content is an object, not a string"],
    [
      "chat",
      message({ content: "{}", tool_calls: 5 }),
      "/choices/0/message/tool_calls is a number, not an array",
    ],
    ["responses", { status: "completed", output: {} }, "/output is an object, not an array"],
    ["responses", item("abc"), "/output/1/content is a string, not an array"],
    ["responses", item([null]), "/output/1/content/0 is null, not an object"],
    [
      "responses",
      item([{ type: "output_text", text: { toString: 1 } }]),
      "/output/1/content/0/text is an object, not a string",
    ],
    [
      "responses",
      { id: "r", status: "failed", error: { message: {} } },
      "/error/message is an object, not a string",
    ],
    ["messages", { content: "abc" }, "/content is a string, not an array"],
    ["messages", { content: [{ type: "text", text: {} }] }, "/content/0/text is an object, not a string"],
    ["native", { candidates: {} }, "/candidates is an object, not an array"],
    ["native", parts("abc"), "/candidates/0/content/parts is a string, not an array"],
    ["native", parts([{ text: [] }]), "/candidates/0/content/parts/0/text is an array, not a string"],
  ]) {
    answer = given;
    const error = await parse[protocol]().then(assert.fail, (error) => error);
    assert.ok(error instanceof DecodeError, `${problem}: ${error}`);
    const says = `parse: the response has a member of an unexpected type: ${problem}`;
    assert.ok(error.message.endsWith(says), error.message);
    assert.deepEqual([error.requestId, error.attempts, error.body], ["req_test", 1, given]);
  }
});

test("a page with a member of an unexpected type is a DecodeError of its loop", async (t) => {
  let answer;
  const server = await serve(t, (_, socket) => answerWith(socket, 200, answer));
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0 });
  const items = () => collect(client.responses.inputItems.list("r"));
  for (const [list, given, says] of [
    [items, { data: 5, has_more: false }, "/data is a number, not an array"],
    [items, { data: "abc", has_more: false }, "/data is a string, not an array"],
    [items, { data: [], has_more: true, last_id: { toString: 1 } }, "/last_id is an object, not a string"],
    [() => collect(client.native.models.list()), { models: {} }, "/models is an object, not an array"],
  ]) {
    answer = given;
    const error = await list().then(assert.fail, (error) => error);
    assert.ok(error instanceof DecodeError, `${says}: ${error}`);
    assert.ok(error.message.endsWith(`list: the response has a member of an unexpected type: ${says}`), says);
    assert.deepEqual(error.body, given);
  }
  answer = { has_more: false };
  assert.deepEqual(await items(), []);
});
