// Sends a playground request and reads the answer as it arrives.
import operations from "virtual:operations";
import { ask } from "../api.ts";
import type { Prepared, Thought, ToolCall, Turn } from "./conversation.ts";
import { events } from "./events.ts";
import type { Added, Protocol } from "./protocols.ts";

/** An answer so far. */
export interface Answer {
  turn: Turn;
  /** The requested model. */
  model: string;
  /** Milliseconds until the first text, thought or call; `null` before it, and if the answer isn't streamed. */
  first: number | null;
  took: number;
  input: number | null;
  output: number | null;
  cached: number | null;
  /** Tokens written to a cache. */
  written: number | null;
  /** The part of `output` that is reasoning. */
  reasoning: number | null;
  /** Why it ended; `null` while it is in progress. */
  reason: string | null;
  requestId: string | null;
  upstream: string | null;
}

/** The path and query of a request. */
export function address(prepared: Prepared): string {
  const operation = operations[prepared.operation];
  if (!operation) throw new Error(`The specification has no operation ${prepared.operation}.`);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(prepared.path[name] ?? ""),
  );
  const query = new URLSearchParams(prepared.query).toString();
  return query ? `${path}?${query}` : path;
}

/** Sends a request and reports the answer each time part of it arrives. If it fails, throws after reporting the last part. */
export async function run(
  key: string,
  protocol: Protocol,
  model: string,
  prepared: Prepared,
  signal: AbortSignal,
  onUpdate: (answer: Answer) => void,
): Promise<Answer> {
  const started = performance.now();
  const calls = new Map<number, ToolCall>();
  const thoughts = new Map<number, Thought>();
  let answer: Answer = {
    turn: { role: "assistant", text: "", thoughts: [], files: [], calls: [], results: [] },
    model,
    first: null,
    took: 0,
    input: null,
    output: null,
    cached: null,
    written: null,
    reasoning: null,
    reason: null,
    requestId: null,
    upstream: null,
  };
  const add = (parts: Added[], at: number, isStream: boolean) => {
    let text = answer.turn.text;
    for (const added of parts) {
      switch (added.kind) {
        case "text":
          text += added.text;
          break;
        case "thought": {
          const before = thoughts.get(added.place) ?? { text: "", signature: "" };
          thoughts.set(added.place, {
            text: before.text + (added.thought.text ?? ""),
            signature: before.signature + (added.thought.signature ?? ""),
          });
          break;
        }
        case "call": {
          const place = added.place < 0 ? calls.size : added.place;
          const before = calls.get(place) ?? { id: "", name: "", arguments: "" };
          calls.set(place, {
            ...before,
            id: added.call.id || before.id,
            name: added.call.name || before.name,
            arguments: before.arguments + (added.call.arguments ?? ""),
            ...(added.call.signature ? { signature: added.call.signature } : {}),
          });
          break;
        }
        case "usage":
          answer.input = added.input ?? answer.input;
          answer.output = added.output ?? answer.output;
          answer.cached = added.cached ?? answer.cached;
          answer.written = added.written ?? answer.written;
          answer.reasoning = added.reasoning ?? answer.reasoning;
          break;
        case "end":
          answer.reason = added.reason;
          break;
        case "error":
          throw new Error(added.message);
      }
    }
    const now = at - started;
    const begins = isStream && answer.first === null && (text !== "" || calls.size > 0 || thoughts.size > 0);
    answer = {
      ...answer,
      turn: { ...answer.turn, text, thoughts: [...thoughts.values()], calls: [...calls.values()] },
      first: begins ? now : answer.first,
      took: now,
    };
    onUpdate(answer);
  };
  const response = await ask(key, address(prepared), { body: prepared.body, signal });
  answer.requestId = response.headers.get("x-request-id");
  answer.upstream = response.headers.get("x-gatewright-upstream");
  if (!response.body) throw new Error("The response has no body.");
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    add(protocol.readWhole(await response.json()), performance.now(), false);
    return answer;
  }
  for await (const { data, at } of events(response.body)) {
    if (data !== "[DONE]") add(protocol.read(JSON.parse(data)), at, true);
  }
  // Like the clients, treat a stream without an end as a failure.
  if (answer.reason === null) throw new Error("The stream ended before the answer was complete.");
  return answer;
}
