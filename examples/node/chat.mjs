// A chat completion and its metadata.
import { Client, responseOf } from "gatewright";

const client = new Client(); // GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY

const completion = await client.chat.completions.create({
  model: "model-sol",
  messages: [
    { role: "system", content: "You are brief." },
    { role: "user", content: "What is a gateway?" },
  ],
  max_tokens: 60,
});
console.log(completion.choices[0]?.message.content);
console.log(completion.usage?.total_tokens, "tokens, request", responseOf(completion).requestId);
