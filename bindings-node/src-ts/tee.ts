/** Splits one reader of documents into branches that each get all of them. */

import type { Batch, Source } from "./feed";

/** Maximum buffer for a reader that falls behind, in UTF-16 code units. */
const MAX_HELD_LENGTH = 256 * 1024 * 1024;

export class Tee {
  readonly #take: () => Promise<readonly string[] | undefined>;
  readonly #close: () => void;
  readonly #open = new Set<Branch>();
  #pulling: Promise<void> | undefined;
  /** How the documents ended, once they have. */
  #end: Batch | undefined;

  /**
   * `take`: returns all documents that are ready, none at the end, or an error. `close`: no more documents are wanted.
   */
  constructor(take: () => Promise<readonly string[] | undefined>, close: () => void) {
    this.#take = take;
    this.#close = close;
  }

  /** Adds a reader for everything pulled from now on. */
  branch(): Source {
    const branch = new Branch(this);
    this.#open.add(branch);
    return branch;
  }

  /**
   * Waits for more documents, and passes them to every open branch. Returns the end, once it is reached. Never rejects.
   */
  async pull(): Promise<Batch | undefined> {
    if (this.#end !== undefined) return this.#end;
    // Branches that wait at the same time wait for the same documents.
    this.#pulling ??= this.#fetch();
    await this.#pulling;
    return undefined;
  }

  /** Removes a branch; the last one to leave closes the source. */
  leave(branch: Branch): void {
    this.#open.delete(branch);
    if (this.#open.size === 0) this.#close();
  }

  async #fetch(): Promise<void> {
    try {
      const documents = await this.#take();
      if (documents === undefined) this.#end = {};
      else for (const branch of this.#open) branch.hold(documents);
    } catch (error) {
      this.#end = { error };
    }
    this.#pulling = undefined;
  }
}

/** One of the readers: buffers unread documents. */
class Branch implements Source {
  readonly #tee: Tee;
  #held: string[] = [];
  #heldLength = 0;
  #closed = false;
  /** Why it was dropped, to report once. */
  #failure: Error | undefined;

  constructor(tee: Tee) {
    this.#tee = tee;
  }

  hold(documents: readonly string[]): void {
    for (const document of documents) {
      this.#held.push(document);
      this.#heldLength += document.length;
    }
    if (this.#heldLength > MAX_HELD_LENGTH) {
      this.close();
      this.#failure = new RangeError(
        `tee(): the reader is ${MAX_HELD_LENGTH} characters behind the other one`,
      );
    }
  }

  async nextBatch(): Promise<Batch> {
    while (this.#held.length === 0) {
      if (this.#closed) return { error: this.#failure };
      const end = await this.#tee.pull();
      // Documents that the other branch pulled meanwhile come before the end.
      if (end !== undefined && this.#held.length === 0) return end;
    }
    const documents = this.#held;
    this.#held = [];
    this.#heldLength = 0;
    return { documents };
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#held = [];
    this.#tee.leave(this);
  }

  /** Branches have no signal of their own: that of the stream reaches them as its error. */
  cancel(): void {
    this.close();
  }
}
