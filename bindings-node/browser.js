// What a bundler for browsers finds in place of the package. CommonJS: no missing name is reported before this.
throw new Error(
  "gatewright does not run in a browser: it is a compiled module for Node, Bun and Deno, and an API key does " +
    "not belong in a page. Call the gateway from your server, and let the page ask that. If this is a server, bundle for " +
    'the condition "node" instead of "browser", or leave gatewright out of the bundle.',
);
