// Streams a chat completion. Leaving the loop, or aborting the signal, closes the connection at once.
import { Client } from "gatewright";

const client = new Client();

const stream = await client.chat.completions.create(
  { model: "model-sol", messages: [{ role: "user", content: "Tell me about rivers." }], stream: true },
  { signal: AbortSignal.timeout(30_000) },
);
for await (const chunk of stream) {
  process.stdout.write(chunk.choices?.[0]?.delta?.content ?? "");
}
process.stdout.write("\n");
