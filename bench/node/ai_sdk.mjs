// The AI SDK with its provider for chat completions, as its users write it.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
import { main, task, weight } from "./measured.mjs";

const model = createOpenAI({ baseURL: task.baseUrl, apiKey: "none" }).chat(task.model);
const { messages } = task;

await main({
  async ask() {
    const { text, usage } = await generateText({ model, messages });
    return weight(text) + usage.totalTokens;
  },
  async read() {
    let total = 0;
    for await (const text of streamText({ model, messages }).textStream) total += weight(text);
    return total;
  },
});
