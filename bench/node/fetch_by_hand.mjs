// The floor for Node clients: fetch and JSON.parse, with no more than the response needs.
import { main, task, weight } from "./measured.mjs";

const { model, messages } = task;

async function send(body) {
  const headers = { authorization: "Bearer none", "content-type": "application/json" };
  const response = await fetch(`${task.baseUrl}/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response;
}

await main({
  async ask() {
    const completion = JSON.parse(await (await send({ model, messages })).text());
    return weight(completion.choices[0].message.content) + completion.usage.total_tokens;
  },
  async read() {
    const decoder = new TextDecoder();
    let [total, rest] = [0, ""];
    for await (const packet of (await send({ model, messages, stream: true })).body) {
      const lines = (rest + decoder.decode(packet, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
        total += weight(JSON.parse(line.slice(6)).choices[0]?.delta.content);
      }
    }
    return total;
  },
});
