/**
 * The AI SDK with its providers: one interface for everything, and each provider sends requests in its
 * protocol.
 */

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateImage, generateObject, generateText, jsonSchema, streamText, tool } from "ai";

import { Refused } from "./scenarios.mjs";

const SETTINGS = { maxRetries: 0, maxOutputTokens: 1024, system: "You are terse." };

function refusal(error) {
  return APICallError.isInstance(error) ? new Refused(error) : error;
}

async function refusing(call) {
  try {
    return await call();
  } catch (error) {
    throw refusal(error);
  }
}

function promptOf(text, picture) {
  const image = picture && { type: "image", image: picture, mediaType: "image/png" };
  return [{ role: "user", content: image ? [{ type: "text", text }, image] : text }];
}

const toolsOf = ({ name, description, parameters }) => ({
  [name]: tool({ description, inputSchema: jsonSchema(parameters) }),
});

/** A client for a model of the SDK or, if it draws, for an image model. */
function connect(model, drawing) {
  return {
    async ask(text, picture) {
      const messages = promptOf(text, picture);
      const result = await refusing(() => generateText({ ...SETTINGS, model, messages }));
      assert.equal(result.finishReason, "stop");
      const { inputTokens, outputTokens } = result.usage;
      return { text: result.text, inputTokens, outputTokens };
    },
    async *stream(text) {
      const result = streamText({ ...SETTINGS, model, messages: promptOf(text), onError() {} });
      for await (const part of result.fullStream) {
        if (part.type === "text-delta") yield part.text;
        // Whatever the provider sent is what breaks a stream.
        if (part.type === "error")
          throw new Refused(part.error?.message ? part.error : { message: `${part.error}` });
      }
      assert.equal(await result.finishReason, "stop");
      this.written = (await result.usage).outputTokens;
    },
    async call(text, tool, streamed) {
      const messages = promptOf(text);
      const options = { ...SETTINGS, model, messages, tools: toolsOf(tool), toolChoice: "required" };
      const result = await refusing(async () => {
        if (!streamed) return generateText(options);
        const stream = streamText({ ...options, onError() {} });
        await stream.consumeStream();
        return stream;
      });
      const [call] = await result.toolCalls;
      const turn = (await result.response).messages;
      return { name: call.toolName, arguments: call.input, id: call.toolCallId, turn };
    },
    async give(text, tool, { id, name, turn }, value) {
      const result = { type: "tool-result", toolCallId: id, toolName: name, output: { type: "text", value } };
      const messages = [...promptOf(text), ...turn, { role: "tool", content: [result] }];
      const options = { ...SETTINGS, model, messages, tools: toolsOf(tool) };
      return (await refusing(() => generateText(options))).text;
    },
    async fill(text, schema) {
      const options = { ...SETTINGS, model, messages: promptOf(text), schema: jsonSchema(schema) };
      return (await refusing(() => generateObject(options))).object;
    },
    async draw(prompt, size) {
      const { maxRetries } = SETTINGS;
      const { images } = await refusing(() => generateImage({ model: drawing, prompt, size, maxRetries }));
      assert.equal(images.length, 1);
      return Buffer.from(images[0].uint8Array);
    },
  };
}

const at = (path) => (target) => ({ baseURL: target.url + path, apiKey: target.key });
const [v1, v1beta] = [at("/v1"), at("/v1beta")];

export const CLIENTS = [
  {
    name: "@ai-sdk/openai, chat",
    protocol: "chat",
    draws: true,
    connect: (target, model) => {
      const openai = createOpenAI(v1(target));
      return connect(openai.chat(model), openai.image(model));
    },
  },
  {
    name: "@ai-sdk/openai, responses",
    protocol: "responses",
    connect: (target, model) => connect(createOpenAI(v1(target)).responses(model)),
  },
  {
    name: "@ai-sdk/openai-compatible, chat",
    protocol: "chat",
    draws: true,
    connect: (target, model) => {
      const options = { name: "gatewright", includeUsage: true, supportsStructuredOutputs: true };
      const provider = createOpenAICompatible({ ...options, ...v1(target) });
      return connect(provider.chatModel(model), provider.imageModel(model));
    },
  },
  {
    name: "@ai-sdk/anthropic, messages",
    protocol: "messages",
    connect: (target, model) => connect(createAnthropic(v1(target))(model)),
  },
  {
    name: "@ai-sdk/google, native",
    protocol: "native",
    connect: (target, model) => connect(createGoogleGenerativeAI(v1beta(target))(model)),
  },
];
