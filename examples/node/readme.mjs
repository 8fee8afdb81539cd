// The README's code.

import { Client } from "gatewright";

const client = new Client();
const completion = await client.chat.completions.create({
  model: "model-sol",
  messages: [{ role: "user", content: "Say hello." }],
});
console.log(completion.choices[0].message.content);
const stream = await client.responses.create({ model: "model-sol", input: "Say hello.", stream: true });
for await (const event of stream) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
}
console.log();
