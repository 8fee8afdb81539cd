/** Client for the Gatewright gateway, its report validator, and the `gatewright` program. */

import { Client } from "./client";

export type { Attempt, Middleware, Outcome } from "./callbacks";
export type {
  ChatCompletionParams,
  ChatParseParams,
  ChatStreamParams,
  ChatToolParams,
  ParsedChatChoice,
  ParsedChatCompletion,
  ParsedChatMessage,
} from "./chat";
export {
  ChatCompletionEvents,
  type ChatEvent,
  type ChatListeners,
  type ChunkEvent,
  type ContentDeltaEvent,
  type ContentDoneEvent,
  type LogprobsContentDeltaEvent,
  type LogprobsContentDoneEvent,
  type LogprobsRefusalDeltaEvent,
  type LogprobsRefusalDoneEvent,
  type RefusalDeltaEvent,
  type RefusalDoneEvent,
  type ToolArgumentsDeltaEvent,
  type ToolArgumentsDoneEvent,
} from "./chat-events";
export {
  type CheckEvidence,
  type CheckId,
  type CheckProgress,
  type CheckRecord,
  type CheckReport,
  type CheckRequest,
  CheckResult,
  check,
  type ProtocolCheck,
  type ProtocolReport,
} from "./check";
export { Client } from "./client";
export { type ErrorDetails, GatewrightError } from "./error";
export { Events } from "./events";
export type { Feed } from "./feed";
export type { FileArgument, NamedFile } from "./file-argument";
// The generated modules are re-exported as a whole, so that additions to the specification appear here automatically.
export * from "./generated/errors";
export type {
  CallDefaults,
  CheckOptions,
  ClientOptions,
  RequestOptions,
  SaveOptions,
  WaitOptions,
} from "./generated/options";
export type * from "./generated/resources";
export * from "./generated/streams";
export type * from "./generated/types";
export type { ResponseItemPage } from "./input-items";
export {
  type CitationEvent,
  type ContentBlockStopEvent,
  type InputJsonEvent,
  type MessageEndEvent,
  type MessageEvent,
  MessageEvents,
  type MessageListeners,
  type SignatureEvent,
  type TextEvent,
  type ThinkingEvent,
} from "./message-events";
export type { MessageParseParams, MessageToolParams, ParsedMessage } from "./messages";
export type { ContentParseParams, ContentToolParams, NativeModelPage, ParsedContent } from "./native";
export type { ApiKeyFunction, ClientAliases, TimeoutAlias } from "./options";
export { ApiPromise } from "./promise";
export { type Emitted, Reader, type ReaderListeners } from "./reader";
export * as report from "./report";
export { ResponseInfo, responseOf } from "./response";
export {
  type ResponseArgumentsEvent,
  type ResponseEvent,
  ResponseEvents,
  type ResponseListeners,
  type ResponseTextEvent,
} from "./response-events";
export type {
  ParsedResponse,
  ResponseParams,
  ResponseParseParams,
  ResponseStreamParams,
  ResponseToolParams,
  SchemaTextOptions,
} from "./responses";
export type { Issue, JsonSchema, Parsed, Schema, StandardSchema, Validated } from "./standard";
export { type RawEvent, Stream } from "./stream";
export {
  type ConversationItem,
  type ConversationMessage,
  Tool,
  type ToolCallContext,
  type ToolDefinition,
  type ToolLoopOptions,
  type ToolRun,
  tool,
} from "./tools";
export * as webhooks from "./webhooks";

export default Client;
