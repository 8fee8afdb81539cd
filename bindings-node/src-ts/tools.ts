/** Tool loops: functions that a model may call, and the conversation in which it does. */

import { engine } from "./engine";
import { type CallSite, cancelled, failureOf } from "./failure";
import type { ChatCompletionMessage, ChatMessage, InputItem, OutputItem } from "./generated/types";
import { readingError } from "./members";
import type { Operation } from "./operation";
import type { RequestOptions } from "./resource";
import { responseOf } from "./response";
import {
  firstProblem,
  isStandard,
  type JsonSchema,
  jsonSchemaOf,
  type Parsed,
  type Schema,
} from "./standard";
import { formatName } from "./structured";

/** Default maximum number of rounds of tool calls. */
const MAX_ROUNDS = 10;
/** Maximum number of characters of an error that are sent to the model. */
const MAX_ERROR_LENGTH = 1000;

/** A tool without arguments. */
const NOTHING: JsonSchema = { type: "object", properties: {}, additionalProperties: false };

/** What a tool gets to know about its call. */
export interface ToolCallContext {
  /** Id of the call. */
  readonly id: string;
  /** The signal of the loop, if it has one. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Describes a function for a model.
 *
 * @example
 * ```js
 * import { tool } from "gatewright";
 *
 * const definition = { name: "add", parameters: { type: "object" }, run: ({ a, b }) => a + b };
 * console.log(tool(definition).name);
 * ```
 */
export interface ToolDefinition<S extends Schema> {
  /** Its name for the model. */
  name: string;
  /** Its description for the model. */
  description?: string;
  /**
   * The schema of its arguments, an object: a zod 4 schema, another Standard Schema, or a JSON Schema, which
   * does not check them. Default: no arguments.
   */
  parameters?: S;
  /** The function. The model gets its return value as text or as JSON, and an error as `error: …`. */
  run(args: Parsed<S>, context: ToolCallContext): unknown;
}

/**
 * A function that a model may call. Create it with `tool`.
 *
 * @example
 * ```js
 * import { tool } from "gatewright";
 *
 * const time = tool({ name: "time", run: () => new Date().toISOString() });
 * console.log(time.name, time.parameters);
 * ```
 */
export class Tool {
  /** Its name for the model. */
  readonly name: string;
  /** Its description for the model. */
  readonly description: string | undefined;
  /** JSON Schema of its arguments. */
  readonly parameters: JsonSchema;
  readonly #schema: Schema | undefined;
  readonly #run: ToolDefinition<Schema>["run"];

  /** Created by `tool`. */
  constructor({ name, description, parameters, run }: ToolDefinition<Schema>) {
    if (typeof run !== "function") throw new TypeError(`tool ${name}: run must be a function`);
    this.name = formatName(name);
    this.description = description;
    this.parameters =
      parameters === undefined ? NOTHING : isStandard(parameters) ? jsonSchemaOf(parameters) : parameters;
    this.#schema = parameters;
    this.#run = run;
  }

  /** Calls the function. Errors: its own; `UnfitArguments`. @internal */
  async call(text: string, context: ToolCallContext): Promise<unknown> {
    // Models leave the text empty where there are no arguments.
    return this.#run((await this.#read(text.trim() || "{}")) as never, context);
  }

  async #read(text: string): Promise<unknown> {
    let given: unknown;
    try {
      given = JSON.parse(text);
    } catch (cause) {
      throw new UnfitArguments(`$: invalid JSON: ${(cause as Error).message}`);
    }
    if (isStandard(this.#schema)) {
      const validated = await this.#schema["~standard"].validate(given);
      if (validated.issues === undefined) return validated.value;
      const { path, message } = firstProblem(validated.issues);
      throw new UnfitArguments(`${path}: ${message}`);
    }
    if (typeof given === "object" && given !== null && !Array.isArray(given)) return given;
    throw new UnfitArguments("$: they must be an object");
  }
}

class UnfitArguments extends TypeError {
  constructor(problem: string) {
    super(`the arguments do not fit: ${problem}`);
  }
}

/**
 * Turns a function into a tool for `runTools`. The schema determines the type of its arguments.
 *
 * Errors: TypeError for a schema without a JSON Schema.
 *
 * @example
 * ```js
 * import { Client, tool } from "gatewright";
 *
 * const weather = tool({
 *   name: "weather",
 *   description: "The weather of a place.",
 *   parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
 *   run: ({ place }) => `sunny in ${place}`,
 * });
 * const run = await new Client().chat.completions.runTools({
 *   model: "model-sol",
 *   messages: [{ role: "user", content: "How is the weather in Oslo?" }],
 *   tools: [weather],
 *   tool_choice: "required",
 * });
 * console.log(run.text);
 * ```
 */
export function tool<S extends Schema>(definition: ToolDefinition<S>): Tool {
  return new Tool(definition as unknown as ToolDefinition<Schema>);
}

/** Options of a tool loop, besides those of its calls. */
export interface ToolLoopOptions<M, E> extends RequestOptions {
  /** Maximum number of rounds in which the model calls tools, one or more at a time. Default: 10. */
  maxRounds?: number | undefined;
  /**
   * Whether an error of a tool, or arguments that do not fit, end the loop. By default, the model gets the
   * error.
   */
  raiseErrors?: boolean | undefined;
  /** Called with each message that is added: the model's, and the results. It is awaited. */
  onMessage?: ((message: M) => unknown) | undefined;
  /** If given, each answer is streamed, and this is called with its events, those of `stream`. It is awaited. */
  onEvent?: ((event: E) => unknown) | undefined;
}

/** The end of a tool loop. */
export interface ToolRun<M, A> {
  /**
   * The whole conversation, including the last answer, to append to and continue: items for responses, turns
   * for messages, contents for native.
   */
  readonly messages: M[];
  /** The last answer. */
  readonly completion: A;
  /** The same as `completion`. */
  readonly response: A;
  /** The text of the last answer. */
  readonly text: string;
  /** Number of rounds in which the model called tools, one or more at a time, or paused. */
  readonly rounds: number;
}

/** A message of a conversation: as it is sent, or as the model answered. */
export type ConversationMessage = ChatMessage | ChatCompletionMessage;

/** An item of a conversation: as it is sent, or as the model answered. */
export type ConversationItem = InputItem | OutputItem;

/** A call that a model requests. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** The result of a call, for the model. */
export interface ToolOutput {
  readonly text: string;
  readonly isError: boolean;
}

/** The contents of an answer. */
export interface Turn<M> {
  /** The messages that it adds to the conversation. */
  readonly added: M[];
  readonly calls: ToolCall[];
  /** Why its calls cannot run: a code for programs, and the protocol's reason. */
  readonly cutOff?: { readonly code: string; readonly reason: string } | undefined;
  /** Why it ends the loop, regardless of its calls. */
  readonly failed?: { readonly code: string; readonly message: string } | undefined;
  /** Whether the model continues if it gets the conversation back unchanged. */
  readonly isPaused?: boolean;
}

/** The differences between the protocols. */
export interface Dialect<M, A> {
  /** Under the name of the method that was called. */
  readonly operation: Operation;
  /** The parameter that holds the conversation. */
  readonly conversation: string;
  /** The parameter that says whether the model may call tools. */
  readonly choice: string;
  begin(given: unknown): M[];
  described(tools: readonly Tool[]): object[];
  /** The tool choice that lets the model decide, instead of one that forces a call. */
  unforced(choice: unknown): unknown;
  /** Errors: `UnexpectedMember`. */
  read(answer: A): Turn<M>;
  /** The messages that the results of a round add to the conversation. */
  results(calls: readonly ToolCall[], outputs: readonly ToolOutput[]): M[];
  /** Errors: `UnexpectedMember`. */
  text(answer: A): string;
}

/**
 * Calls a model repeatedly, and the tools that it requests, until it answers without a call. The calls of a
 * round run at the same time. `ask`: sends one request.
 *
 * Errors: `ToolLoopError` for too many rounds, or calls that were cut off; `DecodeError` if a member of an answer has a
 * type that it cannot read; `CancelledError`; those of `ask`, of the caller's callback and, if requested, of the tools.
 */
export async function loop<M, A extends object>(
  dialect: Dialect<M, A>,
  params: object,
  options: Omit<ToolLoopOptions<M, never>, "onEvent">,
  site: CallSite,
  ask: (params: object, options: RequestOptions) => Promise<A>,
): Promise<ToolRun<M, A>> {
  const { operation, conversation, choice } = dialect;
  const { name: method } = operation;
  const { maxRounds = MAX_ROUNDS, raiseErrors = false, onMessage, ...callOptions } = options;
  if (!Number.isInteger(maxRounds) || maxRounds < 1) {
    throw new TypeError(`${method}: maxRounds must be a whole number from 1, not ${maxRounds}`);
  }
  const { tools: given, [conversation]: initial, ...rest } = params as Record<string, unknown>;
  if (rest["stream"] === true) throw new TypeError(`${method}: it does not stream; leave out stream`);
  const tools = byName(method, given);
  const described = tools.size > 0 && { tools: dialect.described([...tools.values()]) };
  const messages = dialect.begin(initial);
  const { signal } = callOptions;

  const add = async (added: readonly M[]) => {
    for (const message of added) {
      messages.push(message);
      await onMessage?.(message);
    }
  };
  const run = async ({ id, name, arguments: text }: ToolCall): Promise<ToolOutput> => {
    const called = tools.get(name);
    if (called === undefined) {
      return failedOutput(
        `there is no tool ${JSON.stringify(name)}; there are: ${[...tools.keys()].join(", ") || "none"}`,
      );
    }
    try {
      return { text: resultText(await called.call(text, { id, signal })), isError: false };
    } catch (error) {
      if (raiseErrors) throw error;
      return failedOutput(error instanceof Error ? error.message || error.name : String(error));
    }
  };

  const origin = { operation: operation.id, method, site };
  const reading = <T>(answer: A, read: (answer: A) => T): T => {
    try {
      return read(answer);
    } catch (error) {
      const response = responseOf(answer);
      throw readingError(error, { what: "the response", document: answer, ...origin, response });
    }
  };

  for (let rounds = 0; ; rounds += 1) {
    const chosen = rest[choice];
    // A choice that forces a call would force one in each round.
    const unforced = rounds > 0 && chosen != null && { [choice]: dialect.unforced(chosen) };
    const body = { ...rest, ...unforced, ...described, [conversation]: [...messages] };
    // The body of each round differs.
    const key = callOptions.idempotencyKey;
    const again = rounds > 0 && key != null && { idempotencyKey: engine.keyOfRound(key, rounds) };
    const answer = await ask(body, { ...callOptions, ...again });
    const { added, calls, cutOff, failed, isPaused = false } = reading(answer, dialect.read);
    await add(added);
    const fail = (code: string, reason: string) => {
      const { status, requestId, attempts } = responseOf(answer);
      const message = `${method}: ${reason}`;
      const details = { code, operation: operation.id, status, requestId, attempts, answer, messages };
      return failureOf({ kind: "tool_loop", message, ...details }, site);
    };
    if (failed !== undefined) throw fail(failed.code, failed.message);
    if (calls.length === 0 && !isPaused) {
      const text = reading(answer, dialect.text);
      return { messages, completion: answer, response: answer, text, rounds };
    }
    if (cutOff !== undefined)
      throw fail(cutOff.code, `the answer was cut off within its calls of tools (reason: ${cutOff.reason})`);
    if (rounds === maxRounds) {
      throw fail(
        "max_rounds",
        `the model has not answered after ${rounds} rounds; raise maxRounds, or look at what the tools answer: the error ` +
          "has the messages",
      );
    }
    if (calls.length === 0) continue;
    const outputs = await unlessAborted(Promise.all(calls.map(run)), signal, (reason) =>
      cancelled(origin, reason),
    );
    await add(dialect.results(calls, outputs));
  }
}

function byName(method: string, given: unknown): ReadonlyMap<string, Tool> {
  const tools = new Map<string, Tool>();
  for (const one of (given ?? []) as unknown[]) {
    if (!(one instanceof Tool))
      throw new TypeError(`${method}: make each of tools with tool({ name, parameters, run })`);
    if (tools.has(one.name)) throw new TypeError(`${method}: two tools are called ${one.name}`);
    tools.set(one.name, one);
  }
  return tools;
}

function failedOutput(error: string): ToolOutput {
  const message = error.length <= MAX_ERROR_LENGTH ? error : `${error.slice(0, MAX_ERROR_LENGTH)}…`;
  return { text: `error: ${message}`, isError: true };
}

/** The return value of a tool as text for the model: text unchanged, anything else as JSON. */
function resultText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "null");
}

/** The result of some work, or an error as soon as the signal is aborted. */
async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  error: (reason: unknown) => Error,
): Promise<T> {
  if (signal === undefined) return work;
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(error(signal.reason));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
  }
}
