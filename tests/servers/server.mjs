/**
 * A third-party server for these protocols, scripted to answer the check kit: it repeats the token of the
 * prompt and calls the tool that it is required to call. Arguments: its models. Prints its address; ends with
 * its standard input.
 */

import { LLMock } from "@copilotkit/aimock";

const TOKEN = /COMPAT-[0-9a-f]+/i;

const textOf = ({ content }) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

const tokenOf = ({ messages }) => TOKEN.exec(messages.map(textOf).join("\n"))?.[0] ?? "no token";

const answer = (request) => {
  const [tool] = request.tools ?? [];
  if (tool === undefined) return { content: tokenOf(request) };
  const call = { name: tool.function.name, arguments: JSON.stringify({ value: tokenOf(request) }) };
  return { toolCalls: [call] };
};

const server = new LLMock({ port: 0, logLevel: "silent" });
// It lists the models that its responses are for.
for (const model of process.argv.slice(2)) server.on({ model, userMessage: TOKEN }, answer);
await server.start();
console.log(server.url);
process.stdin.resume();
process.stdin.on("end", () => server.stop());
