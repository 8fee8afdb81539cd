// Puts the engine that cargo built where the package looks for it in a checkout.
//
// Usage: node scripts/place-engine.cjs [PROFILE [PLATFORM]]
//   PROFILE: the folder below target/, "debug" unless given.
//   PLATFORM: a name of platforms.json, that of this machine unless given.
// Run after `npm run build`.
"use strict";

const { copyFileSync, renameSync } = require("node:fs");
const { join } = require("node:path");
const { engineFile, platformName } = require("../dist/platform");

const [profile = "debug", platform = platformName()] = process.argv.slice(2);
const built = {
  win32: "gatewright_node.dll",
  darwin: "libgatewright_node.dylib",
}[process.platform];
const target = process.env.CARGO_TARGET_DIR ?? join(__dirname, "../../target");
const place = join(__dirname, "..", engineFile(platform));

// Renamed into place: a process that has the old one loaded keeps it.
copyFileSync(join(target, profile, built ?? "libgatewright_node.so"), `${place}.new`);
renameSync(`${place}.new`, place);
