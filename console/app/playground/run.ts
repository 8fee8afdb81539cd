// Sends a playground request and reads the answer as it arrives.
import operations from "virtual:operations";
import { ask } from "../api.ts";
import type { Prepared, ToolCall, Turn } from "./conversation.ts";
import { events } from "./events.ts";
import type { Protocol } from "./protocols.ts";

/** An answer so far. */
export interface Answer {
  turn: Turn;
  /** Milliseconds until the first text or call. */
  first: number | null;
  took: number;
  input: number | null;
  output: number | null;
  cached: number | null;
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
  prepared: Prepared,
  signal: AbortSignal,
  tell: (answer: Answer) => void,
): Promise<Answer> {
  const begun = performance.now();
  const calls = new Map<number, ToolCall>();
  let answer: Answer = {
    turn: { role: "assistant", text: "", pictures: [], calls: [], results: [] },
    first: null,
    took: 0,
    input: null,
    output: null,
    cached: null,
    reason: null,
    requestId: null,
    upstream: null,
  };
  const response = await ask(key, address(prepared), { body: prepared.body, signal });
  answer.requestId = response.headers.get("x-request-id");
  answer.upstream = response.headers.get("x-gatewright-upstream");
  if (!response.body) throw new Error("The response has no body.");
  for await (const data of events(response.body)) {
    if (data === "[DONE]") continue;
    let text = answer.turn.text;
    for (const added of protocol.read(JSON.parse(data))) {
      switch (added.kind) {
        case "text":
          text += added.text;
          break;
        case "call": {
          const place = added.place < 0 ? calls.size : added.place;
          const before = calls.get(place) ?? { id: "", name: "", arguments: "" };
          calls.set(place, {
            id: added.call.id || before.id,
            name: added.call.name || before.name,
            arguments: before.arguments + (added.call.arguments ?? ""),
          });
          break;
        }
        case "usage":
          answer.input = added.input ?? answer.input;
          answer.output = added.output ?? answer.output;
          answer.cached = added.cached ?? answer.cached;
          break;
        case "end":
          answer.reason = added.reason;
          break;
        case "error":
          throw new Error(added.message);
      }
    }
    const now = performance.now() - begun;
    const begins = answer.first === null && (text !== "" || calls.size > 0);
    answer = {
      ...answer,
      turn: { ...answer.turn, text, calls: [...calls.values()] },
      first: begins ? now : answer.first,
      took: now,
    };
    tell(answer);
  }
  // Like the clients, treat a stream without an end as a failure.
  if (answer.reason === null) throw new Error("The stream ended before the answer was complete.");
  return answer;
}
