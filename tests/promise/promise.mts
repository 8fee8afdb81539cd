// Uses what tests/promise adds to the spec: typed, callable, routed.
import { Client, NotImplementedByGatewayError } from "gatewright";

const client = new Client();
try {
  const greeting = await client.greetings.create({ name: "Ada", words: "good morning", loud: true });
  const words: string = greeting.text;
  console.log(words);
} catch (error) {
  if (!(error instanceof NotImplementedByGatewayError)) throw error;
  console.log(`greetings.create: ${error.status} ${error.code}`);
}

const completion = await client.chat.completions.create({
  model: "model-sol",
  messages: [{ role: "user", content: "hello" }],
  mood: "calm",
});
// Methods that are built on it have them, too.
const parsed = await client.chat.completions.parse({
  model: "model-sol",
  messages: [{ role: "user", content: "hello" }],
  response_format: { type: "object" },
  mood: "calm",
});
const mood: string | null | undefined = completion.answered_mood ?? parsed.answered_mood;
console.log("answered_mood:", mood ?? "none");
