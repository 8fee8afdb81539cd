/**
 * The scenarios that every client runs, and their expected results. ../python/scenarios.py is the same for Python.
 *
 * A client is `{ name, protocol, connect }`, with `draws: true` if it draws, and `hidesHeaders: true` if its errors do
 * not expose the response headers. `connect(target, model)` returns an object that implements each of these actions
 * with the client's own API:
 *
 * - `ask(text, picture?)`: `{ text, inputTokens, outputTokens }`, with the input and output tokens;
 * - `stream(text)`: an async iterable of the pieces of text; at its end, `written` has the output tokens;
 * - `call(text, tool, streamed)`: `{ name, arguments, id, turn }` of a tool that the model must call;
 * - `give(text, tool, call, result)`: the text that answers the result of a call;
 * - `fill(text, schema)`: a document that fits a schema;
 * - `draw(text, size)`: a PNG of the text in a size such as `256x256`, if the client draws.
 *
 * They never retry. A call that fails throws `Refused`.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const STORY = "Tell me about rivers";
const PICTURE = readFileSync(new URL("../picture.png", import.meta.url));
const TOOL = {
  name: "get_weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const PLACES = {
  type: "object",
  properties: { the_city: { type: "string" }, days: { type: "array", items: { type: "integer" } } },
  required: ["the_city", "days"],
  additionalProperties: false,
};

const PNG = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

/** A failed call as the client reports it: the status, the message for its user, and how long to wait. */
export class Refused extends Error {
  constructor(error, status = error.status ?? error.statusCode) {
    super(error.message, { cause: error });
    this.status = status;
    this.retryAfter = error.headers?.get?.("retry-after") ?? error.responseHeaders?.["retry-after"];
  }
}

async function refused(call) {
  let got;
  try {
    got = await call();
  } catch (error) {
    if (error instanceof Refused) return error;
    throw error;
  }
  assert.fail(`it was not refused: ${JSON.stringify(got)}`);
}

async function all(pieces) {
  const list = [];
  for await (const piece of pieces) list.push(piece);
  return list;
}

async function calling(client, streamed) {
  const question = "What is the weather in Paris?";
  const call = await client.call(question, TOOL, streamed);
  assert.deepEqual([call.name, call.arguments], ["get_weather", { city: "Paris" }]);
  const text = await client.give(question, TOOL, call, "clear and cold");
  assert.ok(text.includes("clear and cold"), text);
}

/**
 * Scenarios by name. `connect` creates a client, optionally with other models, another model or another key.
 */
export const SCENARIOS = {
  async chat({ connect }) {
    const answer = await connect().ask("Reply with exactly: good morning");
    assert.equal(answer.text, "good morning");
    assert.ok(answer.inputTokens > 0 && answer.outputTokens > 0, JSON.stringify(answer));
  },

  async stream({ connect, target }) {
    const client = connect();
    const pieces = await all(client.stream(STORY));
    assert.ok(pieces.length > 4, JSON.stringify(pieces));
    if (!target.hides_usage) assert.ok(client.written > 0, `${client.written}`);
    assert.equal(pieces.join(""), (await client.ask(STORY)).text);
  },

  tools: ({ connect }) => calling(connect(), false),

  streamed_tools: ({ connect }) => calling(connect(), true),

  async structured({ connect }) {
    const document = await connect().fill("Plan a trip to Paris", PLACES);
    assert.deepEqual(Object.keys(document).sort(), ["days", "the_city"]);
    assert.equal(typeof document.the_city, "string");
    assert.ok(document.days.every(Number.isInteger), JSON.stringify(document));
  },

  async image({ connect, target }) {
    const client = connect();
    const seen = await client.ask("Reply with exactly: a picture", PICTURE);
    assert.equal(seen.text, "a picture");
    const unseen = await client.ask("Reply with exactly: a picture");
    assert.ok(
      target.drops_pictures || seen.inputTokens > unseen.inputTokens,
      JSON.stringify({ seen, unseen }),
    );
  },

  async draw({ connect }) {
    const drawn = await connect().draw("A lighthouse at dusk", "256x256");
    assert.deepEqual(drawn.subarray(0, PNG.length), PNG);
    // The third-party server draws the same picture for every request.
    if (!drawn.equals(PICTURE)) {
      assert.deepEqual([drawn.readUInt32BE(16), drawn.readUInt32BE(20)], [256, 256]);
    }
  },

  async unknown_model({ connect }) {
    const error = await refused(() => connect({ model: "no-such-model" }).ask("Say hello"));
    assert.equal(error.status, 404, error.message);
    assert.match(error.message, /no-such-model/);
  },

  async wrong_key({ connect, protocol }) {
    const error = await refused(() => connect({ key: "a-wrong-key-of-nobody" }).ask("Say hello"));
    // The native protocol has always answered 400 here.
    assert.equal(error.status, protocol === "native" ? 400 : 401, error.message);
    assert.doesNotMatch(error.message, /a-wrong-key-of-nobody/);
  },

  async rate_limit({ connect, client, target }) {
    const error = await refused(() => connect({ models: "limited" }).ask("Say hello"));
    assert.equal(error.status, 429, error.message);
    if (!client.hidesHeaders && !target.hides_wait) assert.equal(error.retryAfter, "7", error.message);
  },

  async broken_stream({ connect, target }) {
    const pieces = [];
    let failure;
    try {
      for await (const piece of connect({ models: "broken" }).stream(STORY)) pieces.push(piece);
    } catch (error) {
      failure = error;
    }
    // Whatever repaired it, a partial response is never presented as complete.
    if (target.mends_streams && pieces.join("") === (await connect().ask(STORY)).text) return;
    assert.ok(failure instanceof Refused, `${failure ?? "no failure"}, after ${JSON.stringify(pieces)}`);
    assert.ok(failure.message);
    assert.ok(pieces.length > 0 || target.mends_streams);
  },
};

/** Scenarios for which a target needs models of a certain kind. */
export const NEEDS = { draw: "drawing", rate_limit: "limited", broken_stream: "broken" };

/** Whether a client can express a scenario: most of them can't draw. */
export const plays = (client, scenario) => scenario !== "draw" || client.draws === true;
