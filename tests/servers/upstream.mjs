/**
 * A server that is not ours, as an upstream: it speaks chat, responses, messages and native, and answers what
 * `tests/clients` asks. Models that begin with `limited` answer 429; streams of those that begin with `broken`
 * break off. Prints its address; ends with its standard input.
 */

import { LLMock } from "@copilotkit/aimock";

const STORY =
  "Rivers begin small, gather what the hills give them, and end in a sea that keeps none of their names.";
const TRIP = { the_city: "Paris", days: [1, 2] };
const TOKENS_OF_A_PICTURE = 85;

const partsOf = ({ content }) => (Array.isArray(content) ? content : [{ text: content ?? "" }]);
const textOf = (message) =>
  partsOf(message)
    .map((part) => part.text ?? "")
    .join("");
const isPicture = (part) => part.text === undefined;

/** Usage under the names of every protocol: the server takes those of the one that it answers in. */
function usageOf({ messages }) {
  const pictures = messages.flatMap(partsOf).filter(isPicture).length;
  const asked = messages.map(textOf).join("").length + pictures * TOKENS_OF_A_PICTURE;
  return {
    ...{ prompt_tokens: asked, completion_tokens: 7 },
    ...{ input_tokens: asked, output_tokens: 7 },
    ...{ promptTokenCount: asked, candidatesTokenCount: 7 },
  };
}

function answerOf({ messages, tools = [] }) {
  const last = messages.at(-1);
  const question = textOf(messages.findLast(({ role }) => role === "user"));
  const exactly = /exactly: (.*)/.exec(question)?.[1];
  if (exactly) return { content: exactly };
  if (last.role === "tool") return { content: `It is ${textOf(last)}.` };
  const document = JSON.stringify(question.includes("a trip") ? TRIP : { city: "Paris" });
  // Some clients ask for a document by a tool that they make up.
  if (tools.length > 0) return { toolCalls: [{ name: tools[0].function.name, arguments: document }] };
  return { content: question.includes("a trip") ? document : STORY };
}

const server = new LLMock({ port: 0, logLevel: "silent", chunkSize: 8 });
const error = {
  message: "too many requests of this test",
  type: "rate_limit_error",
  code: "rate_limit_exceeded",
};
server.on({ model: /^limited/ }, { error, status: 429, retryAfter: 7 });
server.on({ model: /^broken/ }, { content: STORY }, { truncateAfterChunks: 9, latency: 5 });
server.on({ model: /^model-/ }, (request) => ({ ...answerOf(request), usage: usageOf(request) }));
await server.start();
console.log(server.url);
process.stdin.resume();
process.stdin.on("end", () => server.stop());
