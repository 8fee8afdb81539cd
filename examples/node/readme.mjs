// The README's code.

import { Client } from "gatewright";

const client = new Client();
const completion = await client.chat.completions.create({
  model: "model-sol",
  messages: [{ role: "user", content: "Say hello." }],
});
console.log(completion.choices[0].message.content);
const stream = await client.responses.create({ model: "model-sol", input: "Say hello.", stream: true });
for await (const text of stream.text()) process.stdout.write(text);
console.log();
