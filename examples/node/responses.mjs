// The responses protocol: a whole response, a stream of named events, and a compaction.
import { Client } from "gatewright";

const client = new Client();
const model = "model-terra";

const response = await client.responses.create({ model, input: "Name three rivers." });
for (const item of response.output) {
  if (item.type !== "message") continue;
  for (const part of item.content) if (part.type === "output_text") console.log(part.text);
}

for await (const event of await client.responses.create({
  model,
  input: "Name three lakes.",
  stream: true,
})) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
}
process.stdout.write("\n");

const compacted = await client.responses.compact({ model, input: "A long conversation." });
console.log("compacted to", compacted.output.length, "items");
