// The package as it is loaded: both module systems, the program, the loader's message.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";

import * as esm from "gatewright";

const require = createRequire(import.meta.url);
const ROOT = dirname(require.resolve("gatewright/package.json"));
const PROGRAM = join(ROOT, "bin/gatewright.js");

test("import and require give the same classes under the same names", () => {
  const cjs = require("gatewright");
  const names = Object.keys(cjs).sort();
  assert.ok(names.includes("Client") && names.includes("RateLimitError") && names.includes("report"));
  const { default: _, "module.exports": __, __esModule: ___, ...named } = esm;
  assert.deepEqual(Object.keys(named).sort(), names);
  for (const name of names) assert.equal(named[name], cjs[name], name);
});

test("the program runs, and its exit code is the process's", () => {
  const help = execFileSync(process.execPath, [PROGRAM, "--help"], { encoding: "utf8" });
  assert.match(help, /serve/);
  const wrong = spawnSync(process.execPath, [PROGRAM, "no-such-command"], { encoding: "utf8" });
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /no-such-command/);
});

test("a signal ends the program as it ends any other", async () => {
  const serve = spawn(process.execPath, [PROGRAM, "serve", "--json", "--listen", "127.0.0.1:0"]);
  await once(serve.stdout, "data");
  serve.kill("SIGINT");
  assert.deepEqual(await once(serve, "exit", { signal: AbortSignal.timeout(5000) }), [0, null]);

  const reading = spawn(process.execPath, [PROGRAM, "report", "validate", "-"]);
  // Nothing tells when it has begun to read; a signal before that ends Node itself, the same way.
  setTimeout(() => reading.kill("SIGTERM"), 300);
  assert.deepEqual(await once(reading, "exit", { signal: AbortSignal.timeout(5000) }), [null, "SIGTERM"]);
});

test("a signal stops the gateway that the program runs", async () => {
  const program = spawn(process.execPath, [PROGRAM, "serve", "--json", "--listen", "127.0.0.1:0"]);
  await once(program.stdout, "data");
  const sent = Date.now();
  program.kill("SIGTERM");
  const [code] = await once(program, "exit");
  assert.equal(code, 0);
  assert.ok(Date.now() - sent < 5000);
});

test("without a compiled module for the platform, the message names the platform", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gatewright-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "dist"));
  cpSync(join(ROOT, "dist"), join(folder, "dist"), { recursive: true });
  cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
  const loading = spawnSync(process.execPath, ["-e", "require('./dist')"], { cwd: folder, encoding: "utf8" });
  assert.notEqual(loading.status, 0);
  assert.match(
    loading.stderr,
    new RegExp(`no compiled module for this platform \\(${process.platform}-${process.arch}`),
  );
});

test("the engine's file is found without a report of the process, which takes long", (t) => {
  const report = t.mock.method(process.report, "getReport");
  const { engineFile } = require(join(ROOT, "dist/platform.js"));
  assert.ok(existsSync(join(ROOT, engineFile())));
  if (process.versions.bun === undefined) assert.equal(report.mock.callCount(), 0);
});
