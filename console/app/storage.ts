// Storage that lasts until the tab is closed. Keys never go to storage that outlives the tab.

/** Reads a stored text. Storage may be disabled. */
export function remembered(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Stores a text, or removes it. */
export function remember(name: string, text: string | null): void {
  try {
    if (text === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, text);
  } catch {
    // Without storage, it lasts only as long as the page is open.
  }
}
