/** Why answers of the four protocols are not whole, in the words of chat. */

// Not an object: servers may send any word, also the name of what every object inherits.
const CODES: ReadonlyMap<unknown, string> = new Map([
  ["length", "length"],
  ["max_output_tokens", "length"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["MAX_TOKENS", "length"],
  ["content_filter", "content_filter"],
  ["SAFETY", "content_filter"],
  ["RECITATION", "content_filter"],
  ["BLOCKLIST", "content_filter"],
  ["PROHIBITED_CONTENT", "content_filter"],
  ["SPII", "content_filter"],
]);

/** `length` or `content_filter`; undefined for any other reason. */
export function cutOffCode(reason: unknown): string | undefined {
  return CODES.get(reason);
}
