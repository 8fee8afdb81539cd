/** The forms in which tool loops send and read messages in each protocol. */

import { cutOffCode } from "./cut-off";
import type {
  ChatCompletion,
  GenerateContentResponse,
  Message,
  MessageBlock,
  MessageTurn,
  NativeContent,
  NativePart,
  Response,
} from "./generated/types";
import { objectAt, objectMember, objectsMember, textMember } from "./members";
import type { Operation } from "./operation";
import type { ConversationItem, ConversationMessage, Dialect, Tool, ToolCall, Turn } from "./tools";

/** Places in answers. */
const MESSAGE = "/choices/0/message";
const CANDIDATE = "/candidates/0";
const CONTENT = `${CANDIDATE}/content`;

/** A tool in the form of each protocol; `parameters` is its name for the schema. */
function functionOf({ name, description, parameters: schema }: Tool, parameters = "parameters"): object {
  return { name, ...(description !== undefined && { description }), [parameters]: schema };
}

const autoUnlessNone = (choice: unknown) => (choice === "none" ? choice : "auto");

/** Loops of chat completions. */
export const chatDialect = (operation: Operation): Dialect<ConversationMessage, ChatCompletion> => ({
  operation,
  conversation: "messages",
  choice: "tool_choice",
  begin: (given) => [...(given as ConversationMessage[])],
  described: (tools) => tools.map((tool) => ({ type: "function", function: functionOf(tool) })),
  unforced: autoUnlessNone,
  read(answer) {
    const [choice] = objectsMember(answer, "choices", "");
    if (choice === undefined)
      return { added: [], calls: [], failed: { code: "no_choices", message: "the answer has no choices" } };
    const message = objectAt(choice["message"], MESSAGE);
    const calls = objectsMember(message, "tool_calls", MESSAGE).map((call, at): ToolCall => {
      const place = `${MESSAGE}/tool_calls/${at}`;
      const made = objectMember(call, "function", place);
      const custom = objectMember(call, "custom", place);
      const name = made === undefined ? "custom" : "function";
      return {
        id: textMember(call, "id", place) ?? "",
        name: textMember(made ?? custom ?? {}, "name", `${place}/${name}`) ?? "",
        arguments: argumentsOf(made?.["arguments"] ?? custom?.["input"] ?? ""),
      };
    });
    const { finish_reason: reason } = choice;
    return { added: [message as never], calls, cutOff: cutOf(cutOffCode(reason), reason) };
  },
  results: (calls, outputs) =>
    calls.map(({ id }, index) => ({ role: "tool", tool_call_id: id, content: outputs[index]?.text ?? "" })),
  text(answer) {
    const [choice = {}] = objectsMember(answer, "choices", "");
    const message = objectMember(choice, "message", "/choices/0") ?? {};
    if (!Array.isArray(message["content"])) return textMember(message, "content", MESSAGE) ?? "";
    // Some servers answer with parts.
    return objectsMember(message, "content", MESSAGE)
      .map((part, at) => textMember(part, "text", `${MESSAGE}/content/${at}`) ?? "")
      .join("");
  },
});

/** Loops of responses. */
export const responsesDialect = (operation: Operation): Dialect<ConversationItem, Response> => ({
  operation,
  conversation: "input",
  choice: "tool_choice",
  begin: (given) =>
    typeof given === "string" ? [{ role: "user", content: given }] : [...(given as ConversationItem[])],
  described: (tools) => tools.map((tool) => ({ type: "function", ...functionOf(tool) })),
  unforced: autoUnlessNone,
  read(response) {
    const { status, error, incomplete_details: details } = response;
    const output = objectsMember(response, "output", "");
    const calls: ToolCall[] = [];
    for (const [at, item] of output.entries()) {
      if (item["type"] !== "function_call") continue;
      const place = `/output/${at}`;
      calls.push({
        id: textMember(item, "call_id", place) ?? "",
        name: textMember(item, "name", place) ?? "",
        arguments: argumentsOf(item["arguments"] ?? ""),
      });
    }
    const reason = details?.reason ?? "incomplete";
    const cutOff = { code: cutOffCode(reason) ?? "incomplete", reason };
    const message = `the answer failed: ${error?.message ?? "the gateway does not say why"}`;
    return {
      added: output as never,
      calls,
      cutOff: status === "incomplete" ? cutOff : undefined,
      failed: status === "failed" ? { code: "failed", message } : undefined,
    };
  },
  results: (calls, outputs) =>
    calls.map(({ id }, index) => ({
      type: "function_call_output",
      call_id: id,
      output: outputs[index]?.text ?? "",
    })),
  text: (response) => textMember(response, "output_text", "") ?? "",
});

/** Loops of messages. */
export const messagesDialect = (operation: Operation): Dialect<MessageTurn, Message> => ({
  operation,
  conversation: "messages",
  choice: "tool_choice",
  begin: (given) => [...(given as MessageTurn[])],
  described: (tools) => tools.map((tool) => functionOf(tool, "input_schema")),
  unforced(choice) {
    const { name: _, ...rest } = choice as { type: string; name?: string };
    return rest.type === "none" ? choice : { ...rest, type: "auto" };
  },
  read(message) {
    const { stop_reason: reason } = message;
    const content = objectsMember(message, "content", "");
    const calls: ToolCall[] = [];
    for (const [at, block] of content.entries()) {
      if (block["type"] !== "tool_use") continue;
      const place = `/content/${at}`;
      calls.push({
        id: textMember(block, "id", place) ?? "",
        name: textMember(block, "name", place) ?? "",
        arguments: argumentsOf(block["input"]),
      });
    }
    return {
      // A turn without content cannot be sent.
      added: content.length > 0 ? [{ role: "assistant", content: content as never }] : [],
      calls,
      cutOff: cutOf(reason === "refusal" ? "content_filter" : cutOffCode(reason), reason),
      isPaused: reason === "pause_turn",
    };
  },
  // The protocol wants all results of a turn in the next one.
  results(calls, outputs) {
    const content: MessageBlock[] = outputs.map(({ text, isError }, index) => ({
      type: "tool_result",
      tool_use_id: calls[index]?.id ?? "",
      content: text,
      ...(isError && { is_error: true }),
    }));
    return [{ role: "user", content }];
  },
  text: (message) => textMember(message, "text", "") ?? "",
});

/** Loops of native generate-content. */
export const nativeDialect = (operation: Operation): Dialect<NativeContent, GenerateContentResponse> => ({
  operation,
  conversation: "contents",
  choice: "toolConfig",
  begin: (given) => [...(given as NativeContent[])],
  described: (tools) => [
    { functionDeclarations: tools.map((tool) => functionOf(tool, "parametersJsonSchema")) },
  ],
  unforced(config) {
    const unforced = { ...(config as Record<string, unknown>) };
    // The protocol has two spellings of each name.
    for (const name of ["functionCallingConfig", "function_calling_config"]) {
      const calling = unforced[name] as Record<string, unknown> | null | undefined;
      if (calling?.["mode"] !== "ANY") continue;
      const { allowedFunctionNames: _, allowed_function_names: __, ...rest } = calling;
      unforced[name] = { ...rest, mode: "AUTO" };
    }
    return unforced;
  },
  read(answer) {
    const [candidate] = objectsMember(answer, "candidates", "");
    if (candidate === undefined)
      return {
        added: [],
        calls: [],
        failed: { code: "no_candidates", message: "the answer has no candidates" },
      };
    const { finishReason: reason } = candidate;
    const content = objectMember(candidate, "content", CANDIDATE) ?? {};
    const parts = objectsMember(content, "parts", CONTENT);
    const calls: ToolCall[] = [];
    for (const [at, part] of parts.entries()) {
      const made = objectMember(part, "functionCall", `${CONTENT}/parts/${at}`);
      if (made === undefined) continue;
      const place = `${CONTENT}/parts/${at}/functionCall`;
      calls.push({
        // Many servers give calls no ids: results then follow their order.
        id: textMember(made, "id", place) ?? "",
        name: textMember(made, "name", place) ?? "",
        arguments: argumentsOf(made["args"]),
      });
    }
    const turn = content["role"] ? content : { ...content, role: "model" };
    return {
      added: parts.length > 0 ? [turn as never] : [],
      calls,
      cutOff: cutOf(cutOffCode(reason), reason),
    };
  },
  results(calls, outputs) {
    const parts = outputs.map(({ text, isError }, index): NativePart => {
      const { id = "", name = "" } = calls[index] ?? {};
      // Text alone, as a member: an object's numbers would change, and some names of members are refused.
      const response = isError ? { error: text } : { output: text };
      return { functionResponse: { ...(id !== "" && { id }), name, response } };
    });
    return [{ role: "user", parts }];
  },
  text(answer) {
    const [candidate = {}] = objectsMember(answer, "candidates", "");
    const content = objectMember(candidate, "content", CANDIDATE) ?? {};
    return objectsMember(content, "parts", CONTENT)
      .map((part, at) =>
        part["thought"] === true ? "" : (textMember(part, "text", `${CONTENT}/parts/${at}`) ?? ""),
      )
      .join("");
  },
});

function cutOf(code: string | undefined, reason: unknown): Turn<never>["cutOff"] {
  return code === undefined ? undefined : { code, reason: String(reason) };
}

/** Arguments that are an object, as text; those that were cut off are a text. */
function argumentsOf(given: unknown): string {
  return typeof given === "string" ? given : JSON.stringify(given ?? {});
}
