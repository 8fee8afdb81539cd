// Lays out a package as the registry gets it; `npm pack` in its folder makes the tarball.
//
// Usage: node scripts/lay-out.cjs main FOLDER                  what users install, with all platforms as optional
//        node scripts/lay-out.cjs platform FOLDER [PLATFORM]   the engine of one platform (platforms.json)
//        node scripts/lay-out.cjs server FOLDER                @gatewright/server, with all platforms as optional
//        node scripts/lay-out.cjs server-platform FOLDER PLATFORM BUILT   gatewright-server, from the folder BUILT
// Run after `npm run build`; for a platform, after `npm run engine`.
"use strict";

const { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const source = require("../package.json");
const platforms = require("../platforms.json");
const {
  engineFile,
  enginePackage,
  platformName,
  serverPackage,
  serverProgramFile,
} = require("../dist/platform");

const ROOT = join(__dirname, "..");
const [kind, folder, platform = platformName(), built] = process.argv.slice(2);
const LAYOUTS = { main, platform: engine, server, "server-platform": serverProgram };
if (folder === undefined || LAYOUTS[kind] === undefined) {
  throw new Error(
    "usage: node scripts/lay-out.cjs main|platform|server|server-platform FOLDER [PLATFORM [BUILT]]",
  );
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "package.json"), `${JSON.stringify(LAYOUTS[kind](), null, 2)}\n`);
take("../LICENSE", "LICENSE");

/** The package without what only a checkout needs. */
function main() {
  const { private: _, scripts, devDependencies, ...published } = source;
  for (const name of [...source.files, "README.md"]) take(name);
  const engines = Object.keys(platforms).map((name) => [enginePackage(name), source.version]);
  return { ...published, ...registry(), optionalDependencies: Object.fromEntries(engines) };
}

/** What users install to run a gateway with the program of `gatewright`. */
function server() {
  take("../server/README.md", "README.md");
  const programs = Object.keys(platforms).map((name) => [serverPackage(name), source.version]);
  return {
    name: "@gatewright/server",
    version: source.version,
    description: "The gateway of Gatewright, for `gatewright serve`",
    license: source.license,
    type: source.type,
    engines: source.engines,
    ...registry(),
    files: ["README.md"],
    optionalDependencies: Object.fromEntries(programs),
  };
}

function serverProgram() {
  const file = serverProgramFile(platform);
  mkdirSync(join(folder, "bin"));
  copyFileSync(join(built, file), join(folder, "bin", file));
  return {
    name: serverPackage(platform),
    description: `The program of @gatewright/server for ${platform}`,
    bin: { "gatewright-server": `bin/${file}` },
    files: ["bin"],
    ...ofPlatform("Install `@gatewright/server`, which brings it along."),
  };
}

function engine() {
  const shared = ofPlatform("Install `gatewright`, which brings it along.");
  const file = engineFile(platform);
  take(file);
  return {
    name: enginePackage(platform),
    description: `The compiled module of gatewright for ${platform}`,
    main: file,
    files: [file],
    ...shared,
  };
}

/** What packages of one platform share. */
function ofPlatform(advice) {
  const made = platforms[platform];
  if (made === undefined)
    throw new Error(`platforms.json has no ${platform}: add it, and to the release workflow`);
  writeFileSync(
    join(folder, "README.md"),
    `# For ${platform}\n\nCompiled for \`${made.target}\`. ${advice}\n`,
  );
  return {
    version: source.version,
    license: source.license,
    engines: source.engines,
    ...registry(),
    // npm installs it where all of these fit.
    os: [made.os],
    cpu: [made.cpu],
    ...(made.libc === undefined ? {} : { libc: [made.libc] }),
    // A compiled module cannot be loaded from an archive.
    preferUnplugged: true,
  };
}

/** Where a release is made, it says where: the registry's proof of origin compares. */
function registry() {
  const { GITHUB_REPOSITORY: name, GITHUB_SERVER_URL: server } = process.env;
  const made = name && server ? { repository: { type: "git", url: `git+${server}/${name}.git` } } : {};
  return { ...made, publishConfig: { access: "public" } };
}

function take(from, to = from) {
  cpSync(join(ROOT, from), join(folder, to), { recursive: true, dereference: true });
}
