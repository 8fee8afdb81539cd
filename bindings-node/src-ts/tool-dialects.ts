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
import type { Operation } from "./operation";
import type { ConversationItem, ConversationMessage, Dialect, Tool, ToolCall, Turn } from "./tools";

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
  read({ choices: [choice] }) {
    if (choice === undefined)
      return { added: [], calls: [], failed: { code: "no_choices", message: "the answer has no choices" } };
    const { message, finish_reason: reason } = choice;
    const calls = (message.tool_calls ?? []).map((call) => {
      const {
        id,
        function: made,
        custom,
      } = call as {
        id: string;
        function?: { name: string; arguments: string };
        custom?: { name: string; input: string };
      };
      const name = made?.name ?? custom?.name ?? "";
      return { id, name, arguments: made?.arguments ?? custom?.input ?? "" };
    });
    return { added: [message], calls, cutOff: cutOf(cutOffCode(reason), reason) };
  },
  results: (calls, outputs) =>
    calls.map(({ id }, index) => ({ role: "tool", tool_call_id: id, content: outputs[index]?.text ?? "" })),
  text: ({ choices: [choice] }) => choice?.message.content ?? "",
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
  read({ output, status, error, incomplete_details: details }) {
    const calls = (output as { type: string; call_id?: string; name?: string; arguments?: string }[])
      .filter(({ type }) => type === "function_call")
      .map(({ call_id, name, arguments: text }) => ({
        id: call_id ?? "",
        name: name ?? "",
        arguments: text ?? "",
      }));
    const reason = details?.reason ?? "incomplete";
    const cutOff = { code: cutOffCode(reason) ?? "incomplete", reason };
    const message = `the answer failed: ${error?.message ?? "the gateway does not say why"}`;
    return {
      added: output,
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
  text: (response) => response.output_text,
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
  read({ content, stop_reason: reason }) {
    const calls: ToolCall[] = [];
    for (const block of content) {
      if (block.type !== "tool_use") continue;
      calls.push({ id: block.id, name: block.name, arguments: argumentsOf(block.input) });
    }
    return {
      // A turn without content cannot be sent.
      added: content.length > 0 ? [{ role: "assistant", content }] : [],
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
  text: (message) => message.text,
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
  read({ candidates }) {
    const candidate = candidates?.[0];
    if (candidate === undefined)
      return {
        added: [],
        calls: [],
        failed: { code: "no_candidates", message: "the answer has no candidates" },
      };
    const { content, finishReason: reason } = candidate;
    const parts = content?.parts ?? [];
    const calls: ToolCall[] = [];
    for (const { functionCall: made } of parts) {
      // Many servers give calls no ids: results then follow their order.
      if (made != null) calls.push({ id: made.id ?? "", name: made.name, arguments: argumentsOf(made.args) });
    }
    return {
      added:
        content != null && parts.length > 0 ? [content.role ? content : { ...content, role: "model" }] : [],
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
  text: ({ candidates }) =>
    (candidates?.[0]?.content?.parts ?? [])
      .filter(({ thought }) => thought !== true)
      .map(({ text }) => text ?? "")
      .join(""),
});

function cutOf(code: string | undefined, reason: unknown): Turn<never>["cutOff"] {
  return code === undefined ? undefined : { code, reason: String(reason) };
}

/** Arguments that are an object, as text; those that were cut off are a text. */
function argumentsOf(given: unknown): string {
  return typeof given === "string" ? given : JSON.stringify(given ?? {});
}
