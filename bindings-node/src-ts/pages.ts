/** Pages of lists that go on with the next ones. */

import { type CallSite, failureOf } from "./failure";
import type { Operation } from "./operation";
import { ApiPromise } from "./promise";
import { responseOf } from "./response";

/** How the pages of one list are fetched. `P`: a page; `E`: an element; `M`: the parameters that choose a page. */
interface Paging<P, E, M> {
  readonly operation: Operation;
  readonly site: CallSite;
  /** Fetches the page with these parameters beside those of the caller. */
  fetch(more: Partial<M>): ApiPromise<P>;
  elements(page: P): readonly E[];
  /** Where a page ends: the token of the next one, or its last item. */
  end(page: P): string | null | undefined;
  /** Whether another page follows. */
  goesOn(page: P): boolean;
  /** The parameters of the page after that place. */
  after(end: string): Partial<M>;
}

/** The first page. Errors: those of `fetch`; in the loop also `DecodeError` if a page leads to itself. */
export function paged<P extends object, E, M>(paging: Paging<P, E, M>): ApiPromise<P & AsyncIterable<E>> {
  const goOn = async function* (this: P): AsyncGenerator<E, void, undefined> {
    let page = this;
    for (;;) {
      yield* paging.elements(page);
      const end = paging.end(page);
      if (!paging.goesOn(page) || end == null) return;
      page = await paging.fetch(paging.after(end));
      if (paging.end(page) === end) throw repeated(page, end, paging);
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

function repeated(
  page: object,
  end: string,
  { operation: { id, name }, site }: Pick<Paging<never, never, never>, "operation" | "site">,
): Error {
  const { status, requestId } = responseOf(page);
  const message = `${name}: the page after ${JSON.stringify(end)} ends in the same place again`;
  return failureOf({ kind: "decode", message, operation: id, status, requestId, body: page }, site);
}
