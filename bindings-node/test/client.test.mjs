// Calls with one response: what is sent, what is returned, how it fails.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  APIConnectionError,
  APIError,
  APIStatusError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  CancelledError,
  Client,
  ConfigurationError,
  DecodeError,
  GatewrightError,
  InternalServerError,
  InvalidRequestError,
  NotFoundError,
  RateLimitError,
  ResponseInfo,
  responseOf,
} from "gatewright";

import { answerWith, closedByClient, serve } from "./support/server.mjs";
import { promptly } from "./support/timing.mjs";

const PROMPT = { model: "model-sol", messages: [{ role: "user", content: "Hi, Ünï 👋" }] };
const COMPLETION = {
  zeta: "an unknown member, first",
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "model-sol",
  choices: [
    { index: 0, message: { role: "assistant", content: "Hello 👋", refusal: null }, finish_reason: "stop" },
  ],
  usage: null,
  alpha: { nested: [1, null, { x: 1.5 }] },
};

function clientOf(server, options = {}) {
  return new Client({ baseUrl: server.url, apiKey: "sk-test", maxRetries: 0, ...options });
}

test("a body operation sends its members as JSON with a bearer key (5)", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, COMPLETION));
  await clientOf(server).chat.completions.create({ ...PROMPT, temperature: 0.5, stop: undefined });
  const [request] = server.requests;
  assert.equal(request.method, "POST");
  assert.equal(request.target, "/v1/chat/completions");
  assert.equal(request.headers.authorization, "Bearer sk-test");
  assert.equal(request.headers["content-type"], "application/json");
  assert.match(request.headers["user-agent"], /^gatewright-node\/\S+ (node|bun)\/\d/);
  assert.deepEqual(JSON.parse(request.body), { ...PROMPT, temperature: 0.5 });
});

test("a result is the plain object that arrived: unknown members, nulls and order are preserved", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, COMPLETION));
  const completion = await clientOf(server).chat.completions.create(PROMPT);
  assert.deepEqual(completion, COMPLETION);
  assert.equal(JSON.stringify(completion), JSON.stringify(COMPLETION));
  assert.deepEqual(structuredClone(completion), COMPLETION);
});

test("responseOf and withResponse return status, headers, request ID and attempts", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, COMPLETION, { "x-extra": "yes" }));
  const client = clientOf(server);
  const response = responseOf(await client.chat.completions.create(PROMPT));
  assert.ok(response instanceof ResponseInfo);
  assert.equal(response.status, 200);
  assert.equal(response.requestId, "req_test");
  assert.equal(response.attempts, 1);
  assert.equal(response.headers.get("x-extra"), "yes");
  assert.ok(response.elapsedMs > 0);
  const whole = await client.chat.completions.create(PROMPT).withResponse();
  assert.deepEqual(whole.data, COMPLETION);
  assert.equal(whole.response.headers.get("X-Request-Id"), "req_test");
  assert.throws(() => responseOf({}), TypeError);
});

test("parameters are sent in the path, the query and the body as the specification says (2.5)", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, { models: [] }));
  const client = clientOf(server);
  await client.native.generateContent({ model: "model-sol", contents: [{ parts: [{ text: "Hi" }] }] });
  await client.native.models.list({ pageSize: 5 });
  await client.native.models.list();
  await client.videos.generations.retrieve("task 1");
  assert.deepEqual(
    server.requests.map(({ method, target }) => `${method} ${target}`),
    [
      "POST /v1beta/models/model-sol:generateContent",
      "GET /v1beta/models?pageSize=5",
      "GET /v1beta/models",
      "GET /v1/videos/generations/task%201",
    ],
  );
  assert.deepEqual(JSON.parse(server.requests[0].body), { contents: [{ parts: [{ text: "Hi" }] }] });
});

test("options of a call add headers, query parameters and members of the body", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, COMPLETION));
  await clientOf(server).chat.completions.create(PROMPT, {
    extraHeaders: { "x-trace": "t1" },
    extraQuery: { debug: "1" },
    extraBody: { safety: "off", model: "model-luna" },
  });
  const [request] = server.requests;
  assert.equal(request.target, "/v1/chat/completions?debug=1");
  assert.equal(request.headers["x-trace"], "t1");
  assert.deepEqual(JSON.parse(request.body), { ...PROMPT, safety: "off", model: "model-luna" });
});

test("an invalid argument is a TypeError, and nothing is sent", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, COMPLETION));
  const client = clientOf(server);
  await assert.rejects(client.videos.generations.retrieve(undefined), /task_id must be a string/);
  await assert.rejects(client.native.generateContent({ contents: [] }), /model must be a string/);
  await assert.rejects(client.native.models.list({ signal: undefined }), /no parameter is called signal/);
  const circular = { ...PROMPT };
  circular.self = circular;
  await assert.rejects(client.chat.completions.create(circular), TypeError);
  const seeds = [1, { seed: 2n ** 70n }];
  await assert.rejects(client.chat.completions.create({ ...PROMPT, seeds }), {
    name: "TypeError",
    message: /^chat\.completions\.create\.seeds\[1\]\.seed is a BigInt, which has no JSON form/,
  });
  const extra = (extraBody) => client.chat.completions.create(PROMPT, { extraBody });
  await assert.rejects(extra({ seeds }), /^TypeError: extraBody\.seeds\[1\]\.seed is a BigInt/);
  // What the caller turns into JSON itself is not made a float either.
  const digits = typeof JSON.rawJSON === "function" && JSON.rawJSON("1180591620717411303424");
  if (digits) {
    const message = /extraBody cannot be sent: seed has the integer 1180591620717411303424/;
    await assert.rejects(extra({ seed: digits }), { name: "ConfigurationError", message });
  }
  assert.equal(server.requests.length, 0);
});

test("a misspelled member of a body is refused in the name of the method, and what a provider has of its own is sent", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, COMPLETION));
  const client = clientOf(server);
  const { completions } = client.chat;
  const messages = [{ role: "user", content: "Say hello." }];
  const calls = {
    "chat.completions.create: no parameter is called temprature; did you mean temperature? The option extraBody sends it as it is":
      completions.create({ ...PROMPT, temprature: 1 }),
    "chat.completions.create: no parameter is called maxTokens; did you mean max_tokens?": completions.create(
      {
        ...PROMPT,
        maxTokens: 5,
      },
    ),
    "chat.completions.parse: no parameter is called max_token;": completions.parse({
      ...PROMPT,
      response_format: {},
      max_token: 1,
    }),
    "chat.completions.runTools: no parameter is called reasonig_effort;": completions.runTools({
      ...PROMPT,
      reasonig_effort: "low",
    }),
    "responses.stream: no parameter is called instuctions; did you mean instructions?": client.responses
      .stream({ model: "m", input: "x", instuctions: "x" })
      .finalResponse(),
    "messages.stream: no parameter is called systme; did you mean system?": client.messages
      .stream({ model: "m", max_tokens: 1, messages, systme: "x" })
      .finalMessage(),
    "native.generateContent: no parameter is called generationConfg; did you mean generationConfig?":
      client.native.generateContent({ model: "m", contents: [], generationConfg: {} }),
  };
  for (const [message, call] of Object.entries(calls)) {
    await assert.rejects(call, (error) => error instanceof TypeError && error.message.startsWith(message));
  }
  assert.equal(server.requests.length, 0);

  // Members of other providers, some of which are one letter from ours; a member that is not set.
  const own = { top_k: 5, min_p: 0.1, min_tokens: 1, models: ["a"], repetition_penalty: 1, top_a: 1 };
  await completions.create({ ...PROMPT, ...own, temprature: undefined });
  await completions.create(PROMPT, { extraBody: { temprature: 1 } });
  await client.native.generateContent({ model: "m", contents: [], generation_config: {} });
  assert.deepEqual(JSON.parse(server.requests[0].body), { ...PROMPT, ...own });
  assert.equal(JSON.parse(server.requests[1].body).temprature, 1);
  assert.deepEqual(JSON.parse(server.requests[2].body), { contents: [], generation_config: {} });
});

test("a path parameter cannot escape its segment", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, {}));
  const client = clientOf(server);
  for (const id of ["..", "a/b", "..\\..\\admin", ""]) {
    await assert.rejects(client.videos.generations.retrieve(id), InvalidRequestError);
  }
  assert.equal(server.requests.length, 0);
});

test("a status becomes the class of its kind, with everything the gateway returned (7)", async (t) => {
  const body = {
    error: {
      message: "No such model.",
      type: "invalid_request_error",
      param: "model",
      code: "model_not_found",
    },
  };
  const cases = [
    [400, BadRequestError],
    [401, AuthenticationError],
    [404, NotFoundError],
    [429, RateLimitError],
    [418, APIStatusError],
    [503, InternalServerError],
  ];
  let status;
  const server = await serve(t, (_, socket) => answerWith(socket, status, body, { "retry-after": "7" }));
  const client = clientOf(server);
  for (const [code, kind] of cases) {
    status = code;
    const error = await client.chat.completions.create(PROMPT).then(assert.fail, (error) => error);
    assert.equal(error.constructor, kind, `${code}`);
    assert.ok(
      error instanceof APIStatusError && error instanceof APIError && error instanceof GatewrightError,
    );
    assert.equal(error.name, kind.name);
    assert.equal(error.status, code);
    assert.equal(error.requestId, "req_test");
    assert.equal(error.operation, "create_chat_completion");
    assert.equal(error.code, "model_not_found");
    assert.equal(error.param, "model");
    assert.equal(error.type, "invalid_request_error");
    assert.deepEqual(error.body, body);
    assert.match(error.message, /No such model\./);
    if (code === 429) assert.equal(error.retryAfterMs, 7000);
  }
});

test("an error's stack contains the line of the call, and its cause what happened", async () => {
  const client = new Client({ baseUrl: "http://127.0.0.1:9", apiKey: "sk-test", maxRetries: 0 });
  async function callerOfTheModelList() {
    return await client.models.list();
  }
  const error = await callerOfTheModelList().then(assert.fail, (error) => error);
  assert.ok(error instanceof APIConnectionError);
  assert.match(error.stack, /^APIConnectionError: /);
  assert.match(error.stack, /callerOfTheModelList/);
  assert.match(error.stack, /client\.test\.mjs/);
  assert.ok(error.cause instanceof Error);
  assert.equal(error.status, undefined);
});

test("a non-JSON response retains status, request ID and text", async (t) => {
  const page = "<html>busy</html>";
  const server = await serve(t, (_, socket) =>
    answerWith(socket, 200, page, { "content-type": "text/html" }),
  );
  const error = await clientOf(server)
    .models.list()
    .then(assert.fail, (error) => error);
  assert.ok(error instanceof DecodeError);
  assert.equal(error.status, 200);
  assert.equal(error.requestId, "req_test");
  assert.equal(error.body, page);
});

test("an error or an array instead of a response is a DecodeError", async (t) => {
  const errorBody = { error: { message: "No room.", type: "server_error", param: "model", code: "full" } };
  const answers = [errorBody, []];
  const server = await serve(t, (_, socket) => answerWith(socket, 200, answers.shift()));
  const failed = () =>
    clientOf(server)
      .models.list()
      .then(assert.fail, (error) => error);
  const error = await failed();
  assert.ok(error instanceof DecodeError);
  assert.match(error.message, /No room/);
  assert.deepEqual(
    [error.status, error.code, error.param, error.type],
    [200, "full", "model", "server_error"],
  );
  assert.deepEqual(error.body, errorBody);
  const list = await failed();
  assert.ok(list instanceof DecodeError);
  assert.match(list.message, /it is an array/);
});

test("a signal aborts the request within 100 ms and is the error's cause", async (t) => {
  let arrived;
  const server = await serve(t, (request) => arrived(request));
  await promptly(100, async () => {
    const request = new Promise((resolve) => {
      arrived = resolve;
    });
    const controller = new AbortController();
    const call = clientOf(server).chat.completions.create(PROMPT, { signal: controller.signal });
    const failed = call.then(assert.fail, (error) => error);
    const { socket } = await request;
    const aborted = performance.now();
    controller.abort(new Error("enough"));
    const error = await failed;
    const taken = performance.now() - aborted;
    assert.ok(error instanceof CancelledError);
    assert.equal(error.cause.message, "enough");
    await closedByClient(socket);
    return taken;
  });
});

test("a single call on an open connection respects its signal and timeout, and reports failures", async (t) => {
  const controller = new AbortController();
  // Each request says what becomes of it: which one is on its way does not depend on how busy the machine is.
  const server = await serve(t, ({ body }, socket) => {
    if (body.includes("open")) answerWith(socket, 200, COMPLETION);
    else if (body.includes("abort")) controller.abort(new Error("enough"));
    else if (body.includes("reset")) socket.resetAndDestroy();
  });
  const client = clientOf(server);
  const ask = (content, options) =>
    client.chat.completions.create({ ...PROMPT, messages: [{ role: "user", content }] }, options);
  const after = async (content, options) => {
    await ask("open");
    return ask(content, options).then(assert.fail, (error) => error);
  };
  const aborted = await after("abort", { signal: controller.signal });
  assert.equal(aborted.cause.message, "enough");
  assert.ok((await after("hang", { timeoutMs: 100 })) instanceof APITimeoutError);
  assert.ok((await after("reset")) instanceof APIConnectionError);
  assert.equal(server.requests.length, 6);
});

test("an already aborted signal sends nothing", async (t) => {
  const server = await serve(t, (_, socket) => answerWith(socket, 200, COMPLETION));
  const call = clientOf(server).models.list({ signal: AbortSignal.abort() });
  await assert.rejects(call, (error) => error instanceof CancelledError && error.cause.name === "AbortError");
  assert.equal(server.requests.length, 0);
});

test("a call's timeout bounds the whole call", async (t) => {
  const server = await serve(t, () => {});
  const started = performance.now();
  const call = clientOf(server, { maxRetries: 3 }).models.list({ timeoutMs: 100 });
  await assert.rejects(call, APITimeoutError);
  assert.ok(performance.now() - started < 1000);
});

test("retries are made as configured, and counted", async (t) => {
  let count = 0;
  const server = await serve(t, (_, socket) => {
    count += 1;
    if (count < 3) answerWith(socket, 503, {}, { "retry-after-ms": "1" });
    else answerWith(socket, 200, { object: "list", data: [] });
  });
  const models = await clientOf(server).models.list({ maxRetries: 2 });
  assert.equal(responseOf(models).attempts, 3);
});

test("invalid options are rejected when the client is created", () => {
  const made = (options) => () =>
    new Client({ baseUrl: "http://127.0.0.1:9", apiKey: "sk-test", ...options });
  for (const options of [
    { baseUrl: "ftp://x" },
    { timeoutMs: -1 },
    { timeoutMs: Number.NaN },
    { maxRetries: 1.5 },
  ]) {
    assert.throws(
      made(options),
      (error) => error instanceof ConfigurationError && /client\.test/.test(error.stack),
    );
  }
});

test("address and key come from the environment; a version at the end of the address is dropped", (t) => {
  const { GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY } = process.env;
  t.after(() => {
    for (const [name, value] of Object.entries({ GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  process.env.GATEWRIGHT_BASE_URL = "http://127.0.0.1:8123/v1";
  process.env.GATEWRIGHT_API_KEY = "sk-env";
  assert.equal(new Client().baseUrl, "http://127.0.0.1:8123");
  delete process.env.GATEWRIGHT_API_KEY;
  assert.throws(() => new Client(), /set GATEWRIGHT_API_KEY, or pass one: `new Client\(\{ apiKey \}\)`/);
});

test("a printed client shows no key", async (t) => {
  const { inspect } = await import("node:util");
  const server = await serve(t, () => {});
  assert.doesNotMatch(inspect(clientOf(server), { depth: 10, showHidden: true }), /sk-test/);
});
