/**
 * A third-party server as an upstream: it speaks chat, responses, messages and native, and answers the
 * requests of `tests/clients`. A prompt may contain calls, such as `read_file({"path": "a.txt"})`: they are
 * made one after another, and then their results are reported. Models that begin with `limited` answer 429,
 * those that begin with `hiccup` only the first time; streams of those that begin with `broken` break off.
 * Image requests get the picture of `tests/clients`. Prints its address; ends with its standard input.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";

import { LLMock } from "@copilotkit/aimock";

const STORY =
  "Rivers begin small, gather what the hills give them, and end in a sea that keeps none of their names.";
const TRIP = { the_city: "Paris", days: [1, 2] };
const TOKENS_OF_A_PICTURE = 85;
const WRITTEN_CALLS = /([\w-]+)\((\{.*?\})\)/gs;

const partsOf = ({ content }) => (Array.isArray(content) ? content : [{ text: content ?? "" }]);
const textOf = (message) =>
  partsOf(message)
    .map((part) => part.text ?? "")
    .join("");
/** The request being answered, as received: the server's own view of it has pictures in chat only. */
const asItCame = new AsyncLocalStorage();
const PICTURES = new Set(["image_url", "input_image", "image"]);

function picturesIn(value) {
  if (value === null || typeof value !== "object") return 0;
  if (PICTURES.has(value.type) || value.inlineData || value.inline_data) return 1;
  return Object.values(value).reduce((sum, each) => sum + picturesIn(each), 0);
}

const picturesAsked = () => picturesIn(JSON.parse(Buffer.concat(asItCame.getStore()).toString()));

/** Records the pieces of each request as the server reads them. */
function keepPieces(request) {
  const pieces = [];
  const { emit } = request;
  request.emit = function (name, ...rest) {
    if (name === "data") pieces.push(rest[0]);
    return emit.call(this, name, ...rest);
  };
  asItCame.enterWith(pieces);
}

/** Usage under the names of every protocol: the server uses those of the protocol that it answers in. */
function usageOf(request) {
  const inputTokens = request.messages.map(textOf).join("").length + picturesAsked() * TOKENS_OF_A_PICTURE;
  return {
    ...{ prompt_tokens: inputTokens, completion_tokens: 7 },
    ...{ input_tokens: inputTokens, output_tokens: 7 },
    ...{ promptTokenCount: inputTokens, candidatesTokenCount: 7 },
  };
}

/** The calls in a prompt to tools of the request. */
function writtenCalls(question, tools) {
  const names = new Set(tools.map((tool) => tool.function.name));
  return [...question.matchAll(WRITTEN_CALLS)]
    .map(([, name, written]) => ({ name, arguments: written }))
    .filter(({ name }) => names.has(name));
}

/** The tool that a client adds to get a document, or its only tool. Native schemas are not shown. */
const formOf = (tools) =>
  tools.find(({ function: { parameters } }) => parameters?.properties?.the_city) ??
  tools.find(({ function: { name } }) => name === "StructuredOutput") ??
  (tools.length === 1 ? tools[0] : undefined);

function answerOf(request) {
  const { messages, tools = [] } = request;
  const texts = messages.filter(({ role }) => role === "user").map(textOf);
  const question = texts.findLast(Boolean) ?? "";
  const exactly = /exactly: (.*)/.exec(question)?.[1];
  if (exactly) return { content: exactly };
  const results = messages.filter(({ role }) => role === "tool");
  const next = writtenCalls(question, tools)[results.length];
  if (next) return { toolCalls: [next] };
  // LiteLLM's proxy moves what a tool has shown into a user message after the prompt.
  if (texts.some((text) => text.includes("How many pictures")))
    return { content: `${picturesAsked()} pictures` };
  if (results.length > 0) return { content: `It is ${results.map(textOf).join(" and ")}.` };
  const trip = question.includes("a trip");
  const document = JSON.stringify(trip ? TRIP : { city: "Paris" });
  const form = formOf(tools);
  if (form) return { toolCalls: [{ name: form.function.name, arguments: document }] };
  return { content: trip ? document : STORY };
}

const server = new LLMock({ port: 0, logLevel: "silent", chunkSize: 8 });
const error = {
  message: "too many requests of this test",
  type: "rate_limit_error",
  code: "rate_limit_exceeded",
};
const hiccupped = new Set();
server.on({ model: /^limited/ }, { error, status: 429, retryAfter: 7 });
server.on({ model: /^hiccup/ }, (request) => {
  if (hiccupped.has(request.model)) return answerOf(request);
  hiccupped.add(request.model);
  return { error, status: 429, retryAfter: 1 };
});
server.on({ model: /^broken/ }, { content: STORY }, { truncateAfterChunks: 9, latency: 5 });
const b64Json = readFileSync(new URL("../clients/picture.png", import.meta.url)).toString("base64");
server.on({ model: /^image-/, endpoint: "image" }, { image: { b64Json } });
server.on({ model: /^model-/ }, (request) => ({ ...answerOf(request), usage: usageOf(request) }));
await server.start();
server.serverInstance.server.prependListener("request", keepPieces);
console.log(server.url);
process.stdin.resume();
process.stdin.on("end", () => server.stop());
