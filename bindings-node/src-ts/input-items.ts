/** `client.responses.inputItems`: pages that continue with the next ones. */

import { CallSite } from "./failure";
import { operations } from "./generated/operations";
import { type ListResponseInputItemsParams, ResponsesInputItemsResource } from "./generated/resources";
import type { ResponseItem, ResponseItemList } from "./generated/types";
import { paged } from "./pages";
import type { ApiPromise } from "./promise";
import type { RequestOptions } from "./resource";

/**
 * A page of items. `for await` continues with the items of the next pages; `for` yields those of this page.
 */
export interface ResponseItemPage extends ResponseItemList, AsyncIterable<ResponseItem> {}

/** `client.responses.inputItems`, with pages that continue. */
export class InputItems extends ResponsesInputItemsResource {
  /**
   * Lists the items that a stored response was generated from. `for await` over the page, or over the promise
   * of it, continues with the next pages, unless `before` is set; `for` yields the items of this page.
   *
   * Errors: those of the generated method; `DecodeError` if a page leads back to an earlier one.
   *
   * @example
   * ```js
   * import { Client } from "gatewright";
   *
   * const { responses } = new Client();
   * const { id } = await responses.create({ model: "model-sol", input: "Say hello." });
   * for await (const item of responses.inputItems.list(id, { limit: 10 })) console.log(item.type);
   * ```
   */
  override list(
    responseId: string,
    params: ListResponseInputItemsParams = {},
    options?: RequestOptions,
  ): ApiPromise<ResponseItemPage> {
    const operation = operations.list_response_input_items;
    const site = new CallSite(this.list);
    return paged<ResponseItemList, ResponseItem, ListResponseInputItemsParams>({
      operation,
      site,
      fetch: (more) =>
        this.connection.send<ResponseItemList>(
          operation,
          [responseId],
          { ...params, ...more },
          options,
          site,
        ),
      elements: "data",
      end: "last_id",
      goesOn: ({ has_more: hasMore }) => hasMore && params.before == null,
      after: (after) => ({ after }),
    });
  }
}
