/** The official SDKs of the four protocols, as their users write them. */

import assert from "node:assert/strict";
import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk";
import { FunctionCallingConfigMode, ApiError as GenaiError, GoogleGenAI } from "@google/genai";
import OpenAI, { OpenAIError } from "openai";

import { Refused } from "./scenarios.mjs";

const SYSTEM = "You are terse.";

const dataUrl = (picture) => `data:image/png;base64,${picture.toString("base64")}`;

/** Runs a call of an SDK whose errors have a common class. */
async function refusing(kind, call) {
  try {
    return await call();
  } catch (error) {
    throw error instanceof kind ? new Refused(error) : error;
  }
}

/** The same, for iterated results. */
async function* refusingEach(kind, open) {
  try {
    yield* await open();
  } catch (error) {
    throw error instanceof kind ? new Refused(error) : error;
  }
}

function openai(target) {
  return new OpenAI({ baseURL: `${target.url}/v1`, apiKey: target.key, maxRetries: 0 });
}

function connectChat(target, model) {
  const { chat, images } = openai(target);
  const { completions } = chat;
  const body = (content, more, options) => ({
    model,
    messages: [{ role: "system", content: SYSTEM }, { role: "user", content }, ...more],
    ...options,
  });
  const send = (content, more = [], options = {}) =>
    refusing(OpenAIError, () => completions.create(body(content, more, options)));
  const toolOf = (tool) => ({ type: "function", function: tool });
  return {
    async ask(text, picture) {
      const image = picture && { type: "image_url", image_url: { url: dataUrl(picture) } };
      const { choices, usage } = await send(image ? [{ type: "text", text }, image] : text);
      assert.equal(choices[0].finish_reason, "stop");
      const [inputTokens, outputTokens] = [usage.prompt_tokens, usage.completion_tokens];
      return { text: choices[0].message.content, inputTokens, outputTokens };
    },
    async *stream(text) {
      const options = { stream: true, stream_options: { include_usage: true } };
      let [ended, usage] = [];
      for await (const chunk of refusingEach(OpenAIError, () => send(text, [], options))) {
        usage = chunk.usage ?? usage;
        ended = chunk.choices[0]?.finish_reason ?? ended;
        if (chunk.choices[0]?.delta.content) yield chunk.choices[0].delta.content;
      }
      assert.equal(ended, "stop");
      this.written = usage?.completion_tokens;
    },
    async call(text, tool, streamed) {
      const options = { tools: [toolOf(tool)], tool_choice: "required" };
      const { choices } = streamed
        ? await refusing(OpenAIError, () => completions.stream(body(text, [], options)).finalChatCompletion())
        : await send(text, [], options);
      assert.equal(choices[0].finish_reason, "tool_calls");
      const turn = choices[0].message;
      const [{ id, function: called }] = turn.tool_calls;
      return { name: called.name, arguments: JSON.parse(called.arguments), id, turn };
    },
    async give(text, tool, { id, turn }, content) {
      const more = [turn, { role: "tool", tool_call_id: id, content }];
      return (await send(text, more, { tools: [toolOf(tool)] })).choices[0].message.content;
    },
    async fill(text, schema) {
      const json_schema = { name: "places", schema, strict: true };
      const { choices } = await send(text, [], { response_format: { type: "json_schema", json_schema } });
      return JSON.parse(choices[0].message.content);
    },
    async draw(prompt, size) {
      const params = { model, prompt, size, response_format: "b64_json" };
      const { data } = await refusing(OpenAIError, () => images.generate(params));
      assert.equal(data.length, 1);
      return Buffer.from(data[0].b64_json, "base64");
    },
  };
}

function connectResponses(target, model) {
  const { responses } = openai(target);
  const body = (content, more, options) => ({
    model,
    instructions: SYSTEM,
    input: [{ role: "user", content }, ...more],
    store: false,
    ...options,
  });
  const send = (content, more = [], options = {}) =>
    refusing(OpenAIError, () => responses.create(body(content, more, options)));
  const toolOf = (tool) => ({ type: "function", strict: false, ...tool });
  return {
    async ask(text, picture) {
      const image = picture && { type: "input_image", image_url: dataUrl(picture), detail: "auto" };
      const response = await send(image ? [{ type: "input_text", text }, image] : text);
      assert.equal(response.status, "completed");
      const { input_tokens: inputTokens, output_tokens: outputTokens } = response.usage;
      return { text: response.output_text, inputTokens, outputTokens };
    },
    async *stream(text) {
      let ended;
      for await (const event of refusingEach(OpenAIError, () => send(text, [], { stream: true }))) {
        if (event.type === "response.output_text.delta") yield event.delta;
        if (event.type === "error") throw new Refused(event);
        if (event.type === "response.failed") throw new Refused(event.response.error);
        if (event.type === "response.completed") ended = event.response;
      }
      this.written = ended.usage?.output_tokens;
    },
    async call(text, tool, streamed) {
      const options = { tools: [toolOf(tool)], tool_choice: "required" };
      const response = streamed
        ? await refusing(OpenAIError, () => responses.stream(body(text, [], options)).finalResponse())
        : await send(text, [], options);
      const [called] = response.output.filter((item) => item.type === "function_call");
      const { name, call_id: id } = called;
      return { name, arguments: JSON.parse(called.arguments), id, turn: response.output };
    },
    async give(text, tool, { id, turn }, output) {
      const more = [...turn, { type: "function_call_output", call_id: id, output }];
      return (await send(text, more, { tools: [toolOf(tool)] })).output_text;
    },
    async fill(text, schema) {
      const format = { type: "json_schema", name: "places", schema, strict: true };
      return JSON.parse((await send(text, [], { text: { format } })).output_text);
    },
  };
}

function connectMessages(target, model) {
  const { messages } = new Anthropic({ baseURL: target.url, apiKey: target.key, maxRetries: 0 });
  const body = (content, more = [], options = {}) => ({
    model,
    max_tokens: 1024,
    system: SYSTEM,
    messages: [{ role: "user", content }, ...more],
    ...options,
  });
  const send = (...parts) => refusing(AnthropicError, () => messages.create(body(...parts)));
  const toolOf = ({ parameters, ...tool }) => ({ ...tool, input_schema: parameters });
  const textOf = ({ content }) => content.map((block) => block.text ?? "").join("");
  return {
    async ask(text, picture) {
      const data = picture?.toString("base64");
      const image = picture && { type: "image", source: { type: "base64", media_type: "image/png", data } };
      const message = await send(image ? [{ type: "text", text }, image] : text);
      assert.equal(message.stop_reason, "end_turn");
      const { input_tokens: inputTokens, output_tokens: outputTokens } = message.usage;
      return { text: textOf(message), inputTokens, outputTokens };
    },
    async *stream(text) {
      const stream = messages.stream(body(text));
      for await (const event of refusingEach(AnthropicError, () => stream)) {
        if (event.delta?.type === "text_delta") yield event.delta.text;
      }
      const message = await stream.finalMessage();
      assert.equal(message.stop_reason, "end_turn");
      this.written = message.usage.output_tokens;
    },
    async call(text, tool, streamed) {
      const options = { tools: [toolOf(tool)], tool_choice: { type: "any" } };
      const message = streamed
        ? await refusing(AnthropicError, () => messages.stream(body(text, [], options)).finalMessage())
        : await send(text, [], options);
      assert.equal(message.stop_reason, "tool_use");
      const [{ id, name, input }] = message.content.filter((block) => block.type === "tool_use");
      return { name, arguments: input, id, turn: { role: "assistant", content: message.content } };
    },
    async give(text, tool, { id, turn }, content) {
      const result = { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] };
      return textOf(await send(text, [turn, result], { tools: [toolOf(tool)] }));
    },
    async fill(text, schema) {
      const output_config = { format: { type: "json_schema", schema } };
      return JSON.parse(textOf(await send(text, [], { output_config })));
    },
  };
}

function connectNative(target, model) {
  const { models } = new GoogleGenAI({ apiKey: target.key, httpOptions: { baseUrl: target.url } });
  const body = (contents, config) => ({ model, contents, config: { systemInstruction: SYSTEM, ...config } });
  const send = (contents, config) =>
    refusing(GenaiError, () => models.generateContent(body(contents, config)));
  // An error in mid-stream has no class of its own.
  const pieces = (contents, config) =>
    refusingEach(Error, () => models.generateContentStream(body(contents, config)));
  const toolsOf = ({ parameters, ...tool }) => [
    { functionDeclarations: [{ ...tool, parametersJsonSchema: parameters }] },
  ];
  return {
    async ask(text, picture) {
      const data = picture?.toString("base64");
      const image = picture && { inlineData: { mimeType: "image/png", data } };
      const answer = await send(image ? [{ text }, image] : text);
      assert.equal(answer.candidates[0].finishReason, "STOP");
      const { promptTokenCount: inputTokens, candidatesTokenCount: outputTokens } = answer.usageMetadata;
      return { text: answer.text, inputTokens, outputTokens };
    },
    async *stream(text) {
      let last;
      for await (last of pieces(text)) {
        if (last.text) yield last.text;
      }
      assert.equal(last.candidates[0].finishReason, "STOP");
      this.written = last.usageMetadata?.candidatesTokenCount;
    },
    async call(text, tool, streamed) {
      const toolConfig = { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } };
      const config = { tools: toolsOf(tool), toolConfig };
      const answers = streamed ? pieces(text, config) : [await send(text, config)];
      const parts = [];
      for await (const answer of answers) parts.push(...(answer.candidates?.[0]?.content?.parts ?? []));
      const [{ functionCall: call }] = parts.filter((part) => part.functionCall);
      return { name: call.name, arguments: call.args, id: call.id, turn: { role: "model", parts } };
    },
    async give(text, tool, { id, name, turn }, output) {
      const result = { functionResponse: { id, name, response: { output } } };
      const question = { role: "user", parts: [{ text }] };
      const contents = [question, turn, { role: "user", parts: [result] }];
      return (await send(contents, { tools: toolsOf(tool) })).text;
    },
    async fill(text, schema) {
      const config = { responseMimeType: "application/json", responseJsonSchema: schema };
      return JSON.parse((await send(text, config)).text);
    },
  };
}

export const CLIENTS = [
  { name: "openai, chat", protocol: "chat", connect: connectChat, draws: true },
  { name: "openai, responses", protocol: "responses", connect: connectResponses },
  { name: "@anthropic-ai/sdk, messages", protocol: "messages", connect: connectMessages },
  { name: "@google/genai, native", protocol: "native", connect: connectNative, hidesHeaders: true },
];
