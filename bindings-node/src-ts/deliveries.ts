/** Receives the results of the engine's work: all of them through one function, each with the number of its work. */

import { setInterval } from "node:timers";

import { type Deliver, type EngineAnswer, type EngineDeliveries, engine } from "./engine";

/** As it is now: tests replace timers, and the process would end beneath them. */
const keepAlive = setInterval;
/** The longest period of a timer. */
const FOREVER = 2 ** 31 - 1;

/** Who waits, by the number of their work. */
const waiting = new Map<number, (answer: EngineAnswer) => void>();
let last = 0;
/** Keeps the process alive while a call waits: the engine's own handle does not. */
let vigil: NodeJS.Timeout | undefined;

const deliver: Deliver = (
  number,
  error,
  content,
  stream,
  status,
  headers,
  requestId,
  attempts,
  elapsedMs,
) => {
  const resolve = waiting.get(number);
  if (resolve === undefined) return;
  forget(number);
  resolve({ error, content, stream, status, headers, requestId, attempts, elapsedMs });
};

let way: EngineDeliveries | undefined;

/** What the engine delivers through. */
export function deliveries(): EngineDeliveries {
  way ??= new engine.EngineDeliveries(deliver);
  return way;
}

/**
 * What `made` makes of the result of work that the engine starts under a number. Rejects with what either throws.
 */
export function delivered<T>(start: (number: number) => void, made: (answer: EngineAnswer) => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const number = expect((answer) => {
      // What the engine calls must not throw.
      try {
        resolve(made(answer));
      } catch (error) {
        reject(error);
      }
    });
    try {
      start(number);
    } catch (error) {
      forget(number);
      throw error;
    }
  });
}

function expect(resolve: (answer: EngineAnswer) => void): number {
  do last = (last + 1) >>> 0;
  while (waiting.has(last));
  waiting.set(last, resolve);
  if (waiting.size === 1) {
    if (vigil === undefined) vigil = keepAlive(() => {}, FOREVER);
    else vigil.ref();
  }
  return last;
}

function forget(number: number): void {
  waiting.delete(number);
  if (waiting.size === 0) vigil?.unref();
}
