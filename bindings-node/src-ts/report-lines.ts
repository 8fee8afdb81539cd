/** NDJSON as a stream: bytes in, a verdict for each line out. */

import { Transform, type TransformCallback } from "node:stream";

import type { ValidationOutcome } from "./report";

/** The verdict on one line. */
export interface JudgedLine {
  /** Where it stands, from 1. The places in `outcome` count from the line's own beginning. */
  readonly line: number;
  readonly outcome: ValidationOutcome;
}

interface LineOptions {
  /** Largest line to read, in bytes. */
  readonly maxBytes: number;
  /** Lines judged at a time. */
  readonly ahead: number;
  readonly judge: (line: Uint8Array) => Promise<ValidationOutcome>;
}

export const NEWLINE = 0x0a;

/** A transform from bytes to `JudgedLine`, in order. */
export function lineTransform({ maxBytes, ahead, judge }: LineOptions): Transform {
  const pending: Promise<JudgedLine>[] = [];
  let number = 0;
  /** What has come of the line that has no end yet; no more than one byte over the bound. */
  let begun: Buffer[] = [];
  let held = 0;

  const hold = (part: Buffer): void => {
    // One byte over the bound is enough for the validator to refuse the line by its size.
    const kept = part.subarray(0, Math.max(0, maxBytes + 1 - held));
    // A copy: the chunk that the part lies in is the sender's.
    if (kept.length > 0) begun.push(Buffer.from(kept));
    held += kept.length;
  };
  const end = (): void => {
    number += 1;
    const line = Buffer.concat(begun);
    begun = [];
    held = 0;
    if (line.every(isBlank)) return;
    const place = number;
    const judged = judge(line).then((outcome) => ({ line: place, outcome }));
    // Waited for in order: until then a failure is nobody's, and must not end the process.
    judged.catch(() => undefined);
    pending.push(judged);
  };
  const drain = async (stream: Transform, room: number): Promise<void> => {
    while (pending.length > room) stream.push(await pending.shift());
  };

  return new Transform({
    readableObjectMode: true,
    transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback) {
      const take = async (): Promise<void> => {
        let from = 0;
        for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
          hold(chunk.subarray(from, at));
          end();
          from = at + 1;
          await drain(this, ahead - 1);
        }
        hold(chunk.subarray(from));
      };
      take().then(() => done(), done);
    },
    flush(done: TransformCallback) {
      if (held > 0) end();
      drain(this, 0).then(() => done(), done);
    },
  });
}

/** White space of JSON. */
export function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === NEWLINE;
}
