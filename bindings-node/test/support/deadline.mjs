// A deadline for every test, so that one that hangs is named. Loaded with `--import` by `npm test`; see package.json.

import { afterEach, beforeEach } from "node:test";

/** Many times what the slowest test takes, and less than the client's own timeout of ten minutes. */
const TIME_LIMIT_MS = 120_000;

/** By the test's context. */
const deadlines = new WeakMap();

beforeEach((test) => {
  const passed = () => {
    console.error(`the test "${test.name}" has not ended within ${TIME_LIMIT_MS / 1000} s`);
    process.exit(1);
  };
  // It keeps no process alive: a test that waits for nothing is reported as such.
  deadlines.set(test, setTimeout(passed, TIME_LIMIT_MS).unref());
});

afterEach((test) => clearTimeout(deadlines.get(test)));
