// The four text protocols: how each represents a conversation, and what its events mean.
import type { Prepared, Settings, ToolCall, Turn } from "./conversation.ts";
import { object } from "./conversation.ts";

/** What an event adds to the answer. */
export type Added =
  | { kind: "text"; text: string }
  | { kind: "call"; place: number; call: Partial<ToolCall> }
  | { kind: "usage"; input?: number; output?: number; cached?: number }
  | { kind: "end"; reason: string }
  | { kind: "error"; message: string };

export interface Protocol {
  id: string;
  title: string;
  prepare(model: string, turns: Turn[], settings: Settings): Prepared;
  read(event: Json): Added[];
}

// biome-ignore lint/suspicious/noExplicitAny: events are read as they arrive, and any member may be missing
type Json = any;

/** Members that have a value. */
function stated(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== null && value !== undefined),
  );
}

const some = <T>(list: T[]): T[] | null => (list.length > 0 ? list : null);
const url = (picture: { type: string; base64: string }) => `data:${picture.type};base64,${picture.base64}`;

function failure(event: Json): Added[] {
  const message = event?.error?.message ?? event?.response?.error?.message ?? event?.message;
  return [
    { kind: "error", message: typeof message === "string" ? message : "The stream ended with an error." },
  ];
}

function usage(input: unknown, output: unknown, cached?: unknown): Added {
  return {
    kind: "usage",
    ...(typeof input === "number" ? { input } : {}),
    ...(typeof output === "number" ? { output } : {}),
    ...(typeof cached === "number" ? { cached } : {}),
  };
}

const CHAT: Protocol = {
  id: "chat",
  title: "Chat",
  prepare: (model, turns, settings) => ({
    operation: "create_chat_completion",
    path: {},
    query: {},
    body: stated({
      model,
      messages: [
        ...(settings.system ? [{ role: "system", content: settings.system }] : []),
        ...turns.flatMap(chatMessages),
      ],
      tools: some(settings.tools.map((tool) => ({ type: "function", function: tool }))),
      max_tokens: settings.maxTokens,
      temperature: settings.temperature,
      stream: true,
      stream_options: { include_usage: true },
    }),
  }),
  read: (event) => {
    if (event.error) return failure(event);
    const added: Added[] = [];
    const choice = event.choices?.[0];
    if (choice?.delta?.content) added.push({ kind: "text", text: choice.delta.content });
    for (const call of choice?.delta?.tool_calls ?? []) {
      const { name, arguments: text } = call.function ?? {};
      added.push({ kind: "call", place: call.index ?? 0, call: { id: call.id, name, arguments: text } });
    }
    if (choice?.finish_reason) added.push({ kind: "end", reason: choice.finish_reason });
    if (event.usage) {
      const { prompt_tokens, completion_tokens, prompt_tokens_details } = event.usage;
      added.push(usage(prompt_tokens, completion_tokens, prompt_tokens_details?.cached_tokens));
    }
    return added;
  },
};

function chatMessages(turn: Turn): unknown[] {
  if (turn.results.length > 0) {
    return turn.results.map(({ id, output }) => ({ role: "tool", tool_call_id: id, content: output }));
  }
  if (turn.role === "assistant") {
    const calls = turn.calls.map(({ id, name, arguments: text }) => ({
      id,
      type: "function",
      function: { name, arguments: text },
    }));
    return [stated({ role: "assistant", content: turn.text || null, tool_calls: some(calls) })];
  }
  if (turn.pictures.length === 0) return [{ role: "user", content: turn.text }];
  const pictures = turn.pictures.map((picture) => ({ type: "image_url", image_url: { url: url(picture) } }));
  return [{ role: "user", content: [{ type: "text", text: turn.text }, ...pictures] }];
}

const RESPONSES: Protocol = {
  id: "responses",
  title: "Responses",
  prepare: (model, turns, settings) => ({
    operation: "create_response",
    path: {},
    query: {},
    body: stated({
      model,
      instructions: settings.system || null,
      input: turns.flatMap(responseItems),
      tools: some(settings.tools.map((tool) => ({ type: "function", ...tool }))),
      max_output_tokens: settings.maxTokens,
      temperature: settings.temperature,
      stream: true,
      store: false,
    }),
  }),
  read: (event) => {
    switch (event.type) {
      case "response.output_text.delta":
        return [{ kind: "text", text: event.delta ?? "" }];
      case "response.output_item.done": {
        const item = event.item;
        if (item?.type !== "function_call") return [];
        const call = { id: item.call_id, name: item.name, arguments: item.arguments };
        return [{ kind: "call", place: event.output_index ?? 0, call }];
      }
      case "response.completed":
      case "response.incomplete": {
        const { usage: used, status, incomplete_details } = event.response ?? {};
        const cached = used?.input_tokens_details?.cached_tokens;
        const reason = incomplete_details?.reason ?? status ?? "completed";
        return [usage(used?.input_tokens, used?.output_tokens, cached), { kind: "end", reason }];
      }
      case "response.failed":
      case "error":
        return failure(event);
      default:
        return event.error ? failure(event) : [];
    }
  },
};

function responseItems(turn: Turn): unknown[] {
  if (turn.results.length > 0) {
    return turn.results.map(({ id, output }) => ({ type: "function_call_output", call_id: id, output }));
  }
  if (turn.role === "assistant") {
    const calls = turn.calls.map(({ id, name, arguments: text }) => ({
      type: "function_call",
      call_id: id,
      name,
      arguments: text,
    }));
    return [...(turn.text ? [{ role: "assistant", content: turn.text }] : []), ...calls];
  }
  if (turn.pictures.length === 0) return [{ role: "user", content: turn.text }];
  const pictures = turn.pictures.map((picture) => ({
    type: "input_image",
    image_url: url(picture),
    detail: "auto",
  }));
  return [{ role: "user", content: [{ type: "input_text", text: turn.text }, ...pictures] }];
}

/** The token limit if none is set: the messages protocol requires one. */
const MESSAGES_MAX_TOKENS = 1024;

const MESSAGES: Protocol = {
  id: "messages",
  title: "Messages",
  prepare: (model, turns, settings) => ({
    operation: "create_message",
    path: {},
    query: {},
    body: stated({
      model,
      max_tokens: settings.maxTokens ?? MESSAGES_MAX_TOKENS,
      system: settings.system || null,
      messages: turns.map(blocks),
      tools: some(
        settings.tools.map(({ parameters, ...tool }) => ({
          ...tool,
          input_schema: parameters ?? { type: "object" },
        })),
      ),
      temperature: settings.temperature,
      stream: true,
    }),
  }),
  read: (event) => {
    switch (event.type) {
      case "message_start":
        return event.message?.usage ? [messageUsage(event.message.usage)] : [];
      case "content_block_start": {
        const block = event.content_block;
        if (block?.type === "text" && block.text) return [{ kind: "text", text: block.text }];
        if (block?.type !== "tool_use") return [];
        return [{ kind: "call", place: event.index ?? 0, call: { id: block.id, name: block.name } }];
      }
      case "content_block_delta": {
        const { delta } = event;
        if (delta?.type === "text_delta") return [{ kind: "text", text: delta.text ?? "" }];
        if (delta?.type !== "input_json_delta") return [];
        return [{ kind: "call", place: event.index ?? 0, call: { arguments: delta.partial_json } }];
      }
      case "message_delta": {
        const added: Added[] = event.usage ? [messageUsage(event.usage)] : [];
        if (event.delta?.stop_reason) added.push({ kind: "end", reason: event.delta.stop_reason });
        return added;
      }
      case "error":
        return failure(event);
      default:
        return [];
    }
  },
};

function messageUsage(used: Json): Added {
  const parts = [used.input_tokens, used.cache_read_input_tokens, used.cache_creation_input_tokens];
  const known = parts.filter((part): part is number => typeof part === "number");
  const input = known.length > 0 ? known.reduce((sum, part) => sum + part, 0) : undefined;
  return usage(input, used.output_tokens, used.cache_read_input_tokens);
}

function blocks(turn: Turn): unknown {
  if (turn.results.length > 0) {
    const results = turn.results.map(({ id, output }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: output,
    }));
    return { role: "user", content: results };
  }
  const text = turn.text ? [{ type: "text", text: turn.text }] : [];
  if (turn.role === "assistant") {
    const calls = turn.calls.map(({ id, name, arguments: input }) => ({
      type: "tool_use",
      id,
      name,
      input: object(input),
    }));
    return { role: "assistant", content: [...text, ...calls] };
  }
  if (turn.pictures.length === 0) return { role: "user", content: turn.text };
  const pictures = turn.pictures.map(({ type, base64 }) => ({
    type: "image",
    source: { type: "base64", media_type: type, data: base64 },
  }));
  return { role: "user", content: [...pictures, ...text] };
}

const NATIVE: Protocol = {
  id: "native",
  title: "Native",
  prepare: (model, turns, settings) => {
    const config = stated({ maxOutputTokens: settings.maxTokens, temperature: settings.temperature });
    return {
      operation: "stream_generate_content",
      path: { model },
      query: { alt: "sse" },
      body: stated({
        contents: turns.map(content),
        systemInstruction: settings.system ? { parts: [{ text: settings.system }] } : null,
        tools: settings.tools.length > 0 ? [{ functionDeclarations: settings.tools }] : null,
        generationConfig: Object.keys(config).length > 0 ? config : null,
      }),
    };
  },
  read: (event) => {
    if (event.error) return failure(event);
    const added: Added[] = [];
    const candidate = event.candidates?.[0];
    for (const part of candidate?.content?.parts ?? []) {
      if (part.text && !part.thought) added.push({ kind: "text", text: part.text });
      if (part.functionCall) {
        const { id, name, args } = part.functionCall;
        // Calls arrive whole and need no id.
        const call = { id: id ?? name, name, arguments: JSON.stringify(args ?? {}) };
        added.push({ kind: "call", place: -1, call });
      }
    }
    if (candidate?.finishReason) added.push({ kind: "end", reason: candidate.finishReason });
    if (event.usageMetadata) {
      const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount, cachedContentTokenCount } =
        event.usageMetadata;
      const output =
        typeof candidatesTokenCount === "number"
          ? candidatesTokenCount + (thoughtsTokenCount ?? 0)
          : undefined;
      added.push(usage(promptTokenCount, output, cachedContentTokenCount));
    }
    return added;
  },
};

function content(turn: Turn): unknown {
  if (turn.results.length > 0) {
    const parts = turn.results.map(({ name, output }) => ({
      functionResponse: { name, response: { result: output } },
    }));
    return { role: "user", parts };
  }
  const text = turn.text ? [{ text: turn.text }] : [];
  const calls = turn.calls.map(({ name, arguments: args }) => ({
    functionCall: { name, args: object(args) },
  }));
  const pictures = turn.pictures.map(({ type, base64 }) => ({
    inlineData: { mimeType: type, data: base64 },
  }));
  return { role: turn.role === "user" ? "user" : "model", parts: [...pictures, ...text, ...calls] };
}

export const PROTOCOLS = [CHAT, RESPONSES, MESSAGES, NATIVE];
