// The lines of the README.

import { Client } from "gatewright";

const client = new Client();
const messages = [{ role: "user", content: "Say hello." }];
const completion = await client.chat.completions.create({ model: "model-sol", messages });
console.log(completion.choices[0].message.content);
for await (const chunk of await client.chat.completions.create({ model: "model-sol", messages, stream: true })) {
  process.stdout.write(chunk.choices[0].delta.content ?? "");
}
console.log();
