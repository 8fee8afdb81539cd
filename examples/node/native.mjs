// The native protocol: content, a stream of it, token counts and the model list.
import { Client } from "gatewright";

const client = new Client();
const request = { model: "model-luna", contents: [{ parts: [{ text: "Name three rivers." }] }] };

const content = await client.native.generateContent(request);
console.log(textOf(content));

for await (const part of await client.native.streamGenerateContent(request))
  process.stdout.write(textOf(part));
process.stdout.write("\n");

console.log((await client.native.countTokens(request)).totalTokens, "tokens of input");
const { models } = await client.native.models.list({ pageSize: 3 });
console.log(models?.map((model) => model.name).join(", "));

/** @param {import("gatewright").GenerateContentResponse} content */
function textOf(content) {
  const parts = content.candidates?.[0]?.content?.parts ?? [];
  return parts.map((part) => part.text ?? "").join("");
}
