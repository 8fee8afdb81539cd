/** NDJSON as a stream: bytes in, one verdict per line out. The core defines lines. */

import type { Transform, TransformCallback } from "node:stream";

import type { EngineJudged } from "./engine";
import type { ValidationOutcome } from "./report-outcome";
import type { ReportPool } from "./report-pool";

/** The verdict on one line. */
export interface JudgedLine {
  /** Number of the line, from 1. The locations in `outcome` are relative to the start of the line. */
  readonly line: number;
  /** The verdict on the line. */
  readonly outcome: ValidationOutcome;
}

/** A transform from bytes to `JudgedLine`, in order. `pool`: an ordered one, which ends with the transform. */
export function judgedLines(
  pool: ReportPool,
  outcomeOf: (made: EngineJudged | undefined) => ValidationOutcome,
): Transform {
  /** Whether there was a result to pass on. */
  const handOn = async (stream: Transform): Promise<boolean> => {
    const fetched = await pool.fetch();
    if (fetched === undefined) return false;
    stream.push({ line: fetched.number, outcome: outcomeOf(fetched.made) } satisfies JudgedLine);
    return true;
  };
  // Loaded when it is needed: it is the largest part of what the package would load of Node.
  const stream: typeof import("node:stream") = require("node:stream");
  return new stream.Transform({
    readableObjectMode: true,
    transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback) {
      const take = async (): Promise<void> => {
        pool.feed(chunk);
        while (!pool.advance(false)) await handOn(this);
      };
      take().then(() => done(), done);
    },
    flush(done: TransformCallback) {
      const finish = async (): Promise<void> => {
        while (!pool.advance(true)) await handOn(this);
        while (await handOn(this));
      };
      finish().then(() => done(), done);
    },
    destroy(error: Error | null, done: (error: Error | null) => void) {
      pool.close();
      done(error);
    },
  });
}
