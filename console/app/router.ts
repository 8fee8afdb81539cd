// The current page, from the URL's fragment, which is never sent to the gateway.
import { signal } from "@preact/signals";

function read(): string {
  return location.hash.replace(/^#\/?/, "").split("?")[0] || "playground";
}

/** The path of the page, such as `playground/images`. */
export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
});

export const href = (path: string): string => `#/${path}`;
