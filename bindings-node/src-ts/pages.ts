/** Pages of lists that continue with the next ones. */

import { type CallSite, failureOf } from "./failure";
import { listMember, readingError, textMember } from "./members";
import type { Operation } from "./operation";
import { ApiPromise } from "./promise";
import { responseOf } from "./response";

/** How the pages of one list are fetched. `P`: a page; `M`: the parameters that choose a page. */
interface Paging<P, M> {
  readonly operation: Operation;
  readonly site: CallSite;
  /** Fetches the page with these parameters beside those of the caller. */
  fetch(more: Partial<M>): ApiPromise<P>;
  /** The member that has the elements. */
  readonly elements: keyof P & string;
  /** The member that says where a page ends: the token of the next one, or the last item. */
  readonly end: keyof P & string;
  /** Whether another page follows. */
  goesOn(page: P): boolean;
  /** The parameters of the page after that place. */
  after(end: string): Partial<M>;
}

/**
 * The first page. Errors: those of `fetch`; in the loop also `DecodeError` for a page that cannot be read, or leads back to an
 * earlier one.
 */
export function paged<P extends object, E, M>(paging: Paging<P, M>): ApiPromise<P & AsyncIterable<E>> {
  const goOn = async function* (this: P): AsyncGenerator<E, void, undefined> {
    const cycle = new CycleDetector();
    let page = this;
    for (;;) {
      const { elements, end } = contentsOf<P, E, M>(page, paging);
      if (end !== undefined && cycle.closesAt(end)) throw repeated(page, end, paging);
      yield* elements;
      if (end === undefined) return;
      page = await paging.fetch(paging.after(end));
    }
  };
  // Not enumerable: the page stays as it arrived.
  const first = paging
    .fetch({})
    .then((page) =>
      Object.defineProperty(page, Symbol.asyncIterator, { value: goOn, configurable: true, writable: true }),
    );
  return ApiPromise.of(first as Promise<P & AsyncIterable<E>>);
}

/** The elements of a page, and where it ends; `undefined` if it is the last one. Errors: `DecodeError`. */
function contentsOf<P extends object, E, M>(
  page: P,
  { operation: { id, name }, site, elements, end, goesOn }: Paging<P, M>,
): { readonly elements: readonly E[]; readonly end: string | undefined } {
  try {
    return {
      elements: listMember(page, elements, "") as readonly E[],
      end: goesOn(page) ? textMember(page, end, "") : undefined,
    };
  } catch (error) {
    const [what, response] = ["the response", responseOf(page)];
    throw readingError(error, { what, document: page, operation: id, method: name, site, response });
  }
}

/**
 * Notices a list that leads back to an earlier page. It compares each end of a page with a single earlier one (Brent's
 * algorithm), so that the memory it needs doesn't grow with the list.
 */
class CycleDetector {
  #earlier: string | undefined;
  #steps = 0;
  #stride = 0;

  closesAt(end: string): boolean {
    if (end === this.#earlier) return true;
    if (this.#steps === this.#stride) {
      this.#earlier = end;
      this.#stride = Math.max(2 * this.#stride, 1);
      this.#steps = 0;
    }
    this.#steps += 1;
    return false;
  }
}

function repeated(
  page: object,
  end: string,
  { operation: { id, name }, site }: Pick<Paging<never, never>, "operation" | "site">,
): Error {
  const { status, requestId } = responseOf(page);
  const message = `${name}: the list leads back to an earlier page: ${JSON.stringify(end)}`;
  return failureOf({ kind: "decode", message, operation: id, status, requestId, body: page }, site);
}
