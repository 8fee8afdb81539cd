// The official SDK, as its users write it.
import OpenAI from "openai";
import { main, task, weight } from "./measured.mjs";

const { model, messages } = task;
const client = new OpenAI({ baseURL: task.baseUrl, apiKey: "none" });

await main({
  async ask() {
    const completion = await client.chat.completions.create({ model, messages });
    return weight(completion.choices[0].message.content) + completion.usage.total_tokens;
  },
  async read() {
    let total = 0;
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
      total += weight(chunk.choices[0]?.delta.content);
    }
    return total;
  },
});
