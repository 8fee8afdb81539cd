// The package as it is loaded: both module systems, the program, the loader's message.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import * as esm from "gatewright";
import { enginePath, PACKAGE as ROOT } from "./support/package.mjs";
import { notOnDeno } from "./support/process.mjs";

const require = createRequire(import.meta.url);
const PROGRAM = join(ROOT, "bin/gatewright.js");

const SIGNALS = notOnDeno("a signal ends Deno before the program");

test("import and require export the same classes under the same names", () => {
  const cjs = require("gatewright");
  const names = Object.keys(cjs).sort();
  assert.ok(names.includes("Client") && names.includes("RateLimitError") && names.includes("report"));
  const { default: _, "module.exports": __, __esModule: ___, ...named } = esm;
  assert.deepEqual(Object.keys({ ...named, default: _ }).sort(), names);
  for (const name of names.filter((name) => name !== "default")) assert.equal(named[name], cjs[name], name);
  assert.equal(esm.default, cjs.Client);
  assert.equal(cjs.default, cjs.Client);
});

test("a client that sends calls runs none of the helpers", () => {
  const program = `
    const all = require("gatewright");
    const { made } = all[Symbol.for("gatewright.module")];
    const helpers = ["tools", "structured", "strict", "standard", "chat-events", "response-events", "json-prefix", "check"];
    const ran = () => helpers.filter((name) => made.has(name + ".js")).join();
    const client = new all.Client({ baseUrl: "http://127.0.0.1:9", apiKey: "k", maxRetries: 0 });
    client.chat.completions.create({ model: "m", messages: [] }).catch(() => {
      console.log(ran() || "none");
      console.log(typeof all.tool, ran());
    });
  `;
  const output = execFileSync(process.execPath, ["-e", program], { cwd: ROOT, encoding: "utf8" });
  assert.equal(output, "none\nfunction tools\n");
});

test("the program runs, and its exit code is the process's", () => {
  const help = execFileSync(process.execPath, [PROGRAM, "--help"], { encoding: "utf8" });
  assert.match(help, /serve/);
  const wrong = spawnSync(process.execPath, [PROGRAM, "no-such-command"], { encoding: "utf8" });
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /no-such-command/);
});

test("a signal ends the program like any other", { skip: SIGNALS }, async () => {
  const serve = spawn(process.execPath, [PROGRAM, "serve", "--json", "--listen", "127.0.0.1:0"]);
  await once(serve.stdout, "data");
  serve.kill("SIGINT");
  assert.deepEqual(await once(serve, "exit", { signal: AbortSignal.timeout(5000) }), [0, null]);

  const reading = spawn(process.execPath, [PROGRAM, "report", "validate", "-"]);
  // Nothing signals when it has started reading; an earlier signal ends Node itself, in the same way.
  setTimeout(() => reading.kill("SIGTERM"), 300);
  assert.deepEqual(await once(reading, "exit", { signal: AbortSignal.timeout(5000) }), [null, "SIGTERM"]);
});

test("a signal stops the gateway that the program runs", { skip: SIGNALS }, async () => {
  const program = spawn(process.execPath, [PROGRAM, "serve", "--json", "--listen", "127.0.0.1:0"]);
  await once(program.stdout, "data");
  const sent = Date.now();
  program.kill("SIGTERM");
  const [code] = await once(program, "exit");
  assert.equal(code, 0);
  assert.ok(Date.now() - sent < 5000);
});

/** A folder with the package installed without its engine, and a way to load it there. */
function installed(t) {
  const folder = mkdtempSync(join(tmpdir(), "gatewright-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const place = join(folder, "node_modules/gatewright");
  mkdirSync(place, { recursive: true });
  cpSync(join(ROOT, "dist"), join(place, "dist"), { recursive: true });
  for (const file of ["package.json", "platforms.json", "browser.js"])
    cpSync(join(ROOT, file), join(place, file));
  const load = (before = "") =>
    spawnSync(process.execPath, ["-e", `${before}; console.log(typeof require("gatewright").Client)`], {
      cwd: folder,
      encoding: "utf8",
    });
  return { folder, load };
}

/** Installs a version of the engine package for this platform. */
function installEngine(folder, version) {
  const { engineFile, enginePackage, platformName } = require(join(ROOT, "dist/platform.js"));
  const place = join(folder, "node_modules", enginePackage(platformName()));
  mkdirSync(place, { recursive: true });
  cpSync(enginePath(), join(place, engineFile()));
  const manifest = { name: enginePackage(platformName()), version, main: engineFile() };
  writeFileSync(join(place, "package.json"), JSON.stringify(manifest));
  return manifest;
}

const { version: VERSION } = require("gatewright/package.json");

test("if the platform's engine package is missing, the message names it and how to install it", (t) => {
  const loading = installed(t).load();
  assert.notEqual(loading.status, 0);
  const { platformName } = require(join(ROOT, "dist/platform.js"));
  assert.ok(
    loading.stderr.includes(`no compiled module for this platform (${platformName()}`),
    loading.stderr,
  );
  assert.ok(loading.stderr.includes(`npm install @gatewright/${platformName()}@${VERSION}`), loading.stderr);
});

test("on a platform without a package, the message names the existing ones", (t) => {
  const loading = installed(t).load(`Object.defineProperty(process, "platform", { value: "sunos" })`);
  assert.notEqual(loading.status, 0);
  assert.match(loading.stderr, /no compiled module for this platform \(sunos-/);
  for (const platform of Object.keys(require(join(ROOT, "platforms.json")))) {
    assert.ok(loading.stderr.includes(platform), platform);
  }
});

test("the engine is loaded from the package of its platform", (t) => {
  const { folder, load } = installed(t);
  installEngine(folder, VERSION);
  const { stdout, stderr } = load();
  assert.equal(stdout, "function\n", stderr);
});

test("an engine of another version is rejected, and both versions are named", (t) => {
  const { folder, load } = installed(t);
  const { name } = installEngine(folder, "0.0.1");
  const loading = load();
  assert.notEqual(loading.status, 0);
  assert.ok(loading.stderr.includes(`${name} has version 0.0.1, and gatewright ${VERSION}`), loading.stderr);
});

test("an engine that cannot be loaded is named, with the reason", (t) => {
  const { folder, load } = installed(t);
  const { name, main } = installEngine(folder, VERSION);
  writeFileSync(join(folder, "node_modules", name, main), "not a compiled module");
  const loading = load();
  assert.notEqual(loading.status, 0);
  assert.ok(loading.stderr.includes(`the compiled module ${name} cannot be loaded`), loading.stderr);
});

test("a bundle for browsers says that the package is not for browsers", () => {
  const { exports } = require("gatewright/package.json");
  assert.equal(Object.keys(exports["."])[0], "browser", "the first condition that fits is taken");
  assert.throws(
    () => require(join(ROOT, exports["."].browser.default)),
    /gatewright does not run in a browser/,
  );
});

test("the engine's file is found without a slow process report", (t) => {
  const report = t.mock.method(process.report, "getReport");
  assert.ok(existsSync(enginePath()));
  if (process.versions.bun === undefined) assert.equal(report.mock.callCount(), 0);
});
