// The four text protocols: how each represents a conversation, and what its events mean.
import { AUDIO_FORMATS, AUDIO_TYPES, IMAGE_TYPES, PDF_TYPES, withTexts } from "./attachments.ts";
import type { Attachment, Prepared, Settings, Thought, ToolCall, Turn } from "./conversation.ts";
import { object } from "./conversation.ts";

/** What an event adds to the answer. */
export type Added =
  | { kind: "text"; text: string }
  | { kind: "call"; place: number; call: Partial<ToolCall> }
  | { kind: "thought"; place: number; thought: Partial<Thought> }
  | { kind: "usage"; input?: number; output?: number; cached?: number; reasoning?: number; written?: number }
  | { kind: "end"; reason: string }
  | { kind: "error"; message: string };

export interface Protocol {
  id: string;
  title: string;
  /** The media types of files that it takes. */
  files: readonly string[];
  /** Settings that it lacks. */
  lacks: readonly (keyof Settings)[];
  /** The levels of reasoning that a request may set. */
  efforts: readonly string[];
  prepare(model: string, turns: Turn[], settings: Settings): Prepared;
  /** What an event of a stream adds. */
  read(event: Json): Added[];
  /** What an answer in one document adds up to. */
  readWhole(answer: Json): Added[];
}

/** A request. Throws an error if the protocol can't express part of it. */
export function prepare(chosen: Protocol, model: string, turns: Turn[], settings: Settings): Prepared {
  const prepared = turns.map(withTexts);
  for (const file of prepared.flatMap((turn) => turn.files)) {
    if (!chosen.files.includes(file.type)) {
      throw new Error(
        `${chosen.title} takes no ${file.type}: remove ${file.name}, or choose another protocol.`,
      );
    }
  }
  if (settings.effort && !chosen.efforts.includes(settings.effort)) {
    throw new Error(`${chosen.title} has no reasoning effort "${settings.effort}".`);
  }
  return chosen.prepare(model, prepared, settings);
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
const thought = (text: string, place = 0): Added => ({ kind: "thought", place, thought: { text } });
const EFFORTS = ["none", "minimal", "low", "medium", "high"];
/** The name of the schema of answers. */
const SCHEMA = "answer";
const url = (file: Attachment) => `data:${file.type};base64,${file.base64}`;

function failure(event: Json): Added[] {
  const message = event?.error?.message ?? event?.response?.error?.message ?? event?.message;
  return [
    { kind: "error", message: typeof message === "string" ? message : "The stream ended with an error." },
  ];
}

function usage(
  input: unknown,
  output: unknown,
  cached?: unknown,
  reasoning?: unknown,
  written?: unknown,
): Added {
  return {
    kind: "usage",
    ...(typeof input === "number" ? { input } : {}),
    ...(typeof output === "number" ? { output } : {}),
    ...(typeof cached === "number" ? { cached } : {}),
    ...(typeof reasoning === "number" ? { reasoning } : {}),
    ...(typeof written === "number" ? { written } : {}),
  };
}

const CHAT: Protocol = {
  id: "chat",
  title: "Chat",
  files: [...IMAGE_TYPES, ...PDF_TYPES, ...AUDIO_TYPES],
  lacks: [],
  efforts: EFFORTS,
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
      tool_choice: choice(settings, (name) => ({ type: "function", function: { name } })),
      max_tokens: settings.maxTokens,
      temperature: settings.temperature,
      top_p: settings.topP,
      stop: some(settings.stop),
      seed: settings.seed,
      reasoning_effort: settings.effort || null,
      response_format: settings.schema && {
        type: "json_schema",
        json_schema: { name: SCHEMA, schema: settings.schema },
      },
      stream: settings.stream || null,
      stream_options: settings.stream ? { include_usage: true } : null,
    }),
  }),
  read: (event) => {
    if (event.error) return failure(event);
    const added: Added[] = [];
    const choice = event.choices?.[0];
    const reasoning = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning;
    if (typeof reasoning === "string" && reasoning) added.push(thought(reasoning));
    if (choice?.delta?.content) added.push({ kind: "text", text: choice.delta.content });
    for (const call of choice?.delta?.tool_calls ?? []) {
      const { name, arguments: text } = call.function ?? {};
      added.push({ kind: "call", place: call.index ?? 0, call: { id: call.id, name, arguments: text } });
    }
    if (choice?.finish_reason) added.push({ kind: "end", reason: choice.finish_reason });
    if (event.usage) added.push(chatUsage(event.usage));
    return added;
  },
  readWhole: (answer) => {
    const { message, finish_reason } = answer.choices?.[0] ?? {};
    // A delta of a stream with everything in it.
    const calls = message?.tool_calls?.map((call: Json, index: number) => ({ ...call, index }));
    const whole = { delta: { ...message, tool_calls: calls }, finish_reason: finish_reason ?? "stop" };
    return CHAT.read({ ...answer, choices: [whole] });
  },
};

function chatUsage(used: Json): Added {
  const reasoning = used.completion_tokens_details?.reasoning_tokens;
  const cached = used.prompt_tokens_details?.cached_tokens;
  return usage(used.prompt_tokens, used.completion_tokens, cached, reasoning);
}

/** The choice of a tool, where words stand for themselves. */
function choice({ tools, toolChoice }: Settings, named: (name: string) => unknown): unknown {
  if (toolChoice === "" || tools.length === 0) return null;
  return ["auto", "required", "none"].includes(toolChoice) ? toolChoice : named(toolChoice);
}

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
  if (turn.files.length === 0) return [{ role: "user", content: turn.text }];
  return [{ role: "user", content: [{ type: "text", text: turn.text }, ...turn.files.map(chatPart)] }];
}

function chatPart(file: Attachment): unknown {
  if (IMAGE_TYPES.includes(file.type)) return { type: "image_url", image_url: { url: url(file) } };
  const format = AUDIO_FORMATS[file.type];
  if (format) return { type: "input_audio", input_audio: { data: file.base64, format } };
  return { type: "file", file: { filename: file.name, file_data: url(file) } };
}

const RESPONSES: Protocol = {
  id: "responses",
  title: "Responses",
  files: [...IMAGE_TYPES, ...PDF_TYPES],
  lacks: ["stop", "seed"],
  efforts: EFFORTS,
  prepare: (model, turns, settings) => ({
    operation: "create_response",
    path: {},
    query: {},
    body: stated({
      model,
      instructions: settings.system || null,
      input: turns.flatMap(responseItems),
      tools: some(settings.tools.map((tool) => ({ type: "function", ...tool }))),
      tool_choice: choice(settings, (name) => ({ type: "function", name })),
      max_output_tokens: settings.maxTokens,
      temperature: settings.temperature,
      top_p: settings.topP,
      reasoning: settings.effort ? { effort: settings.effort, summary: "auto" } : null,
      text: settings.schema && {
        format: { type: "json_schema", name: SCHEMA, schema: settings.schema },
      },
      stream: settings.stream || null,
      store: false,
    }),
  }),
  read: (event) => {
    switch (event.type) {
      case "response.output_text.delta":
        return [{ kind: "text", text: event.delta ?? "" }];
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return [thought(event.delta ?? "", event.output_index)];
      case "response.output_item.done":
        return responseCall(event.item, event.output_index ?? 0);
      case "response.completed":
      case "response.incomplete":
        return responseEnd(event.response ?? {});
      case "response.failed":
      case "error":
        return failure(event);
      default:
        return event.error ? failure(event) : [];
    }
  },
  readWhole: (answer) => {
    if (answer.status === "failed") return failure({ response: answer });
    const items = (answer.output ?? []).flatMap((item: Json, place: number): Added[] => {
      if (item.type === "message") {
        const parts: Json[] = item.content ?? [];
        return parts.flatMap(({ text }) => (text ? [{ kind: "text", text }] : []));
      }
      if (item.type !== "reasoning") return responseCall(item, place);
      const summary: Json[] = item.summary ?? [];
      return summary.map(({ text }) => thought(text ?? "", place));
    });
    return [...items, ...responseEnd(answer)];
  },
};

function responseCall(item: Json, place: number): Added[] {
  if (item?.type !== "function_call") return [];
  return [{ kind: "call", place, call: { id: item.call_id, name: item.name, arguments: item.arguments } }];
}

function responseEnd({ usage: used, status, incomplete_details }: Json): Added[] {
  const cached = used?.input_tokens_details?.cached_tokens;
  const reasoning = used?.output_tokens_details?.reasoning_tokens;
  const reason = incomplete_details?.reason ?? status ?? "completed";
  return [usage(used?.input_tokens, used?.output_tokens, cached, reasoning), { kind: "end", reason }];
}

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
  if (turn.files.length === 0) return [{ role: "user", content: turn.text }];
  const files = turn.files.map((file) =>
    IMAGE_TYPES.includes(file.type)
      ? { type: "input_image", image_url: url(file), detail: "auto" }
      : { type: "input_file", filename: file.name, file_data: url(file) },
  );
  return [{ role: "user", content: [{ type: "input_text", text: turn.text }, ...files] }];
}

/** The token limit if none is set: the messages protocol requires one. */
const MESSAGES_MAX_TOKENS = 1024;

const MESSAGES: Protocol = {
  id: "messages",
  title: "Messages",
  files: [...IMAGE_TYPES, ...PDF_TYPES],
  lacks: ["seed"],
  efforts: ["none", "low", "medium", "high", "xhigh", "max"],
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
      tool_choice: messageChoice(settings),
      temperature: settings.temperature,
      top_p: settings.topP,
      stop_sequences: some(settings.stop),
      ...messageOutput(settings),
      stream: settings.stream || null,
    }),
  }),
  read: (event) => {
    switch (event.type) {
      case "message_start":
        return event.message?.usage ? [messageUsage(event.message.usage)] : [];
      case "content_block_start": {
        const block = event.content_block;
        if (block?.type !== "tool_use") return messageBlock(block, event.index ?? 0);
        return [{ kind: "call", place: event.index ?? 0, call: { id: block.id, name: block.name } }];
      }
      case "content_block_delta": {
        const { delta } = event;
        if (delta?.type === "text_delta") return [{ kind: "text", text: delta.text ?? "" }];
        if (delta?.type === "thinking_delta") return [thought(delta.thinking ?? "", event.index)];
        if (delta?.type === "signature_delta") {
          return [
            { kind: "thought", place: event.index ?? 0, thought: { signature: delta.signature ?? "" } },
          ];
        }
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
  readWhole: (answer) => [
    ...(answer.content ?? []).flatMap(messageBlock),
    ...(answer.usage ? [messageUsage(answer.usage)] : []),
    { kind: "end", reason: answer.stop_reason ?? "end_turn" },
  ],
};

/** What a whole block adds. */
function messageBlock(block: Json, place: number): Added[] {
  switch (block?.type) {
    case "text":
      return block.text ? [{ kind: "text", text: block.text }] : [];
    case "thinking": {
      const { thinking, signature } = block;
      return [{ kind: "thought", place, thought: { text: thinking ?? "", signature: signature ?? "" } }];
    }
    case "tool_use": {
      const text = JSON.stringify(block.input ?? {});
      return [{ kind: "call", place, call: { id: block.id, name: block.name, arguments: text } }];
    }
    default:
      return [];
  }
}

function messageChoice(settings: Settings): unknown {
  const chosen = choice(settings, (name) => ({ type: "tool", name }));
  if (typeof chosen !== "string") return chosen;
  return { type: chosen === "required" ? "any" : chosen };
}

/** How much the model thinks, and the format of the output. */
function messageOutput({ effort, schema }: Settings): Record<string, unknown> {
  const config = stated({
    effort: effort && effort !== "none" ? effort : null,
    format: schema && { type: "json_schema", schema },
  });
  return {
    ...(effort ? { thinking: effort === "none" ? { type: "disabled" } : { type: "adaptive" } } : {}),
    ...(Object.keys(config).length > 0 ? { output_config: config } : {}),
  };
}

function messageUsage(used: Json): Added {
  const parts = [used.input_tokens, used.cache_read_input_tokens, used.cache_creation_input_tokens];
  const known = parts.filter((part): part is number => typeof part === "number");
  const input = known.length > 0 ? known.reduce((sum, part) => sum + part, 0) : undefined;
  return usage(
    input,
    used.output_tokens,
    used.cache_read_input_tokens,
    undefined,
    used.cache_creation_input_tokens,
  );
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
    // Models that think require the thoughts before a call, unchanged.
    const thoughts = turn.thoughts
      .filter(({ signature }) => signature !== "" && calls.length > 0)
      .map(({ text, signature }) => ({ type: "thinking", thinking: text, signature }));
    return { role: "assistant", content: [...thoughts, ...text, ...calls] };
  }
  if (turn.files.length === 0) return { role: "user", content: turn.text };
  const files = turn.files.map(({ type, base64 }) => ({
    type: IMAGE_TYPES.includes(type) ? "image" : "document",
    source: { type: "base64", media_type: type, data: base64 },
  }));
  return { role: "user", content: [...files, ...text] };
}

const NATIVE: Protocol = {
  id: "native",
  title: "Native",
  files: [...IMAGE_TYPES, ...PDF_TYPES, ...AUDIO_TYPES],
  lacks: [],
  efforts: EFFORTS,
  prepare: (model, turns, settings) => {
    const config = stated({
      maxOutputTokens: settings.maxTokens,
      temperature: settings.temperature,
      topP: settings.topP,
      stopSequences: some(settings.stop),
      seed: settings.seed,
      responseMimeType: settings.schema && "application/json",
      responseJsonSchema: settings.schema,
      thinkingConfig: thinkingConfig(settings.effort),
    });
    const query: Record<string, string> = settings.stream ? { alt: "sse" } : {};
    return {
      operation: settings.stream ? "stream_generate_content" : "generate_content",
      path: { model },
      query,
      body: stated({
        contents: turns.map(content),
        systemInstruction: settings.system ? { parts: [{ text: settings.system }] } : null,
        tools: settings.tools.length > 0 ? [{ functionDeclarations: settings.tools }] : null,
        toolConfig: nativeChoice(settings),
        generationConfig: Object.keys(config).length > 0 ? config : null,
      }),
    };
  },
  read: (event) => {
    if (event.error) return failure(event);
    const added: Added[] = [];
    const candidate = event.candidates?.[0];
    for (const part of candidate?.content?.parts ?? []) {
      if (part.text) added.push(part.thought ? thought(part.text) : { kind: "text", text: part.text });
      if (part.functionCall) {
        const { id, name, args } = part.functionCall;
        // Calls arrive whole and need no id.
        const call = {
          id: id ?? name,
          name,
          arguments: JSON.stringify(args ?? {}),
          signature: part.thoughtSignature,
        };
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
      added.push(usage(promptTokenCount, output, cachedContentTokenCount, thoughtsTokenCount));
    }
    return added;
  },
  readWhole: (answer) => NATIVE.read(answer),
};

function thinkingConfig(effort: string): unknown {
  if (effort === "") return null;
  return effort === "none" ? { thinkingBudget: 0 } : { thinkingLevel: effort, includeThoughts: true };
}

function nativeChoice(settings: Settings): unknown {
  const modes: Record<string, string> = { auto: "AUTO", required: "ANY", none: "NONE" };
  const chosen = choice(settings, (name) => ({ mode: "ANY", allowedFunctionNames: [name] }));
  if (chosen === null) return null;
  return { functionCallingConfig: typeof chosen === "string" ? { mode: modes[chosen] } : chosen };
}

function content(turn: Turn): unknown {
  if (turn.results.length > 0) {
    const parts = turn.results.map(({ name, output }) => ({
      functionResponse: { name, response: { result: output } },
    }));
    return { role: "user", parts };
  }
  const text = turn.text ? [{ text: turn.text }] : [];
  const calls = turn.calls.map(({ name, arguments: args, signature }) =>
    stated({ functionCall: { name, args: object(args) }, thoughtSignature: signature }),
  );
  const files = turn.files.map(({ type, base64 }) => ({
    inlineData: { mimeType: type, data: base64 },
  }));
  return { role: turn.role === "user" ? "user" : "model", parts: [...files, ...text, ...calls] };
}

export const PROTOCOLS = [CHAT, RESPONSES, MESSAGES, NATIVE];
