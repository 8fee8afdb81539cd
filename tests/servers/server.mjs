/**
 * A server that is not ours and speaks these protocols, told to answer what the check kit asks: it repeats the token
 * of the prompt and calls the tool it is made to call. Arguments: its models. Prints its address; ends with its
 * standard input.
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
// It lists the models that its answers are for.
for (const model of process.argv.slice(2)) server.on({ model, userMessage: TOKEN }, answer);
await server.start();
console.log(server.url);
process.stdin.resume();
process.stdin.on("end", () => server.stop());
