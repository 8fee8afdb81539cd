/** Reads documents written one per line from a stream of bytes. */

import { engine } from "./engine";
import { cancelled } from "./failure";
import type { Batch, Origin, Source } from "./feed";

/** The non-blank lines of a byte stream. */
export class Lines implements Source {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #lines = new engine.EngineLines();
  #closed = false;
  /** The error to report once, if a signal has ended it. */
  #failure: Error | undefined;
  readonly #origin: Origin;

  constructor(readable: ReadableStream<Uint8Array>, origin: Origin) {
    this.#reader = readable.getReader();
    this.#origin = origin;
  }

  async nextBatch(): Promise<Batch> {
    try {
      for (;;) {
        if (this.#failure !== undefined) return { error: this.#failure };
        const { done, value } = await this.#reader.read();
        const documents = done ? this.#lines.finish() : this.#lines.take(value);
        if (documents === null) {
          throw new RangeError(`fromReadableStream: a line is longer than ${this.#lines.maxBytes} bytes`);
        }
        if (documents.length > 0) return { documents };
        if (done && this.#failure === undefined) return {};
      }
    } catch (error) {
      this.close();
      return { error };
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // The reader gets its failure from `nextBatch`, unless no reader is waiting.
    this.#reader.cancel().catch(() => {});
  }

  cancel(reason: unknown): void {
    this.#failure = cancelled(this.#origin, reason);
    this.close();
  }
}
