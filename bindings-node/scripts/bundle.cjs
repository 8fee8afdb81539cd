// Makes one file of all modules that the package needs, `dist/index.js`, in place of the one that `tsc` wrote: loading
// it reads and compiles one file instead of forty. `dist/index.mjs` passes on what that exports. It requires it: in
// what an ES module imports from CommonJS, Node searches the text for names, which takes longer than all else.
//
// Usage: node scripts/bundle.cjs   Run after `tsc`, whose modules are taken without their comments, each in a function of its
// own.
"use strict";

const { readFileSync, writeFileSync } = require("node:fs");
const { dirname, join, relative } = require("node:path");
const { ModuleKind, transpileModule } = require("typescript");

const root = join(__dirname, "..");
const built = join(root, "dist");

/** Modules that run when something of them is used: a program that only sends calls needs none of them. */
const LATER = [
  "chat-events.js",
  "check.js",
  "cut-off.js",
  "elements.js",
  "files.js",
  "images.js",
  "input-items.js",
  "json-prefix.js",
  "native.js",
  "pages.js",
  "report-lines.js",
  "report-pool.js",
  "response-events.js",
  "rows.js",
  "standard.js",
  "strict.js",
  "structured.js",
  "tee.js",
  "tool-dialects.js",
  "tools.js",
  "videos.js",
];

/** The modules that `file` needs, itself included, by their paths below `dist/`, in the order in which they are found. */
function modulesOf(file, found = new Map()) {
  const name = relative(built, file);
  if (found.has(name)) return found;
  found.set(name, "");
  const text = withoutComments(readFileSync(file, "utf8")).replaceAll(
    /require\("(\.[^"]*)"\)/g,
    (call, path) => {
      // Not one of the build: the package's own description.
      if (path.endsWith(".json")) return call;
      const needed = join(dirname(file), `${path}.js`);
      modulesOf(needed, found);
      return `module_(${JSON.stringify(relative(built, needed))})`;
    },
  );
  found.set(name, withLater(text));
  return found;
}

function withoutComments(text) {
  const compilerOptions = { module: ModuleKind.ESNext, removeComments: true, target: "ES2022" };
  return transpileModule(text, { compilerOptions }).outputText;
}

/** The text of a module that asks for a module of `LATER` where it uses it, not at its beginning. */
function withLater(text) {
  let later = text;
  for (const [line, name, call, path] of text.matchAll(
    /^(?:const|var) (\w+) = (module_\("([^"]+)"\));\n/gm,
  )) {
    if (!LATER.includes(path)) continue;
    later = later
      .replace(line, "")
      // A call in `new` would take its arguments.
      .replaceAll(new RegExp(`\\bnew ${name}\\.(\\w+)`, "g"), (_, member) => `new (${call}.${member})`)
      .replaceAll(new RegExp(`\\b${name}\\b`, "g"), () => call);
  }
  return later;
}

/** The names of what a module of the build exports. */
function exportedNames(modules, name) {
  const text = modules.get(name);
  const matches = (pattern) => [...text.matchAll(pattern)].map(([, found]) => found);
  const own = matches(/\bexports(?:\.|, ")(\w+)/g).filter((found) => found !== "__esModule");
  const passed = matches(/__exportStar\(module_\("([^"]+)"\), exports\)/g);
  return [...own, ...passed.flatMap((other) => exportedNames(modules, other))];
}

/** What the program loads, beside what users do. */
const ENTRIES = ["cli.js"];

const modules = modulesOf(join(built, "index.js"));
for (const entry of ENTRIES) modulesOf(join(built, entry), modules);
// The default export has no name of its own.
const names = [...new Set(exportedNames(modules, "index.js"))].filter((name) => name !== "default").sort();
const functions = [...modules].map(([name, text]) => `${JSON.stringify(name)}: (exports) => {\n${text}},\n`);
writeFileSync(
  join(built, "index.js"),
  `"use strict";
/** What each module exports, once it has run or while it runs. */
const made = new Map();
const module_ = (name) => {
  let exports = made.get(name);
  if (exports === undefined) {
    exports = {};
    made.set(name, exports);
    modules[name](exports);
  }
  return exports;
};
const modules = {
${functions.join("")}};
module.exports = module_("index.js");
module_.made = made;
Object.defineProperty(module.exports, Symbol.for("gatewright.module"), { value: module_ });
`,
);
// Whoever loads one module by itself gets that of the one file.
for (const name of modules.keys()) {
  // This one must return the engine's name before there is an engine.
  if (name === "index.js" || name === "platform.js") continue;
  const whole = `${"../".repeat(name.split(/[\\/]/).length - 1) || "./"}index.js`;
  const found = `require("${whole}")[Symbol.for("gatewright.module")](${JSON.stringify(name)})`;
  writeFileSync(join(built, name), `"use strict";\nmodule.exports = ${found};\n`);
}

writeFileSync(
  join(built, "index.mjs"),
  `// One copy of everything for both module systems.
import { createRequire } from "node:module";

const all = createRequire(import.meta.url)("./index.js");
export const {
${names.map((name) => `  ${name},\n`).join("")}} = all;
export default all.default;
`,
);
