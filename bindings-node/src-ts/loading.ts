/** Finds the engine of this platform: beside this package in a checkout, otherwise in a separate package. */

import { existsSync } from "node:fs";
import { join } from "node:path";

import { engineFile, enginePackage, platformName } from "./platform";

/** The compiled module. Errors: an `Error` that names the package to install. */
export function loadEngine(): unknown {
  const platform = platformName();
  const beside = join(__dirname, "..", engineFile(platform));
  if (existsSync(beside)) return open(beside, platform);

  const { version } = require("../package.json") as { version: string };
  const name = enginePackage(platform);
  const installed = versionOf(name);
  if (installed === undefined) throw new Error(absent(platform, version));
  if (installed !== version) {
    throw new Error(
      `gatewright: ${name} has version ${installed}, and gatewright ${version}. They have to be equal: ` +
        `install gatewright@${version} and ${name}@${version} together.`,
    );
  }
  return open(name, platform);
}

/** The version of an installed package; nothing if there is no such package. */
function versionOf(name: string): string | undefined {
  try {
    return (require(`${name}/package.json`) as { version: string }).version;
  } catch {
    return undefined;
  }
}

function open(module: string, platform: string): unknown {
  try {
    return require(module);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `gatewright: the compiled module ${module} cannot be loaded on this platform (${platform}, ` +
        `Node ${process.version}): ${reason}`,
      { cause },
    );
  }
}

function absent(platform: string, version: string): string {
  const head = `gatewright: no compiled module for this platform (${platform}, Node ${process.version}). `;
  const platforms = Object.keys(require("../platforms.json") as Record<string, unknown>);
  if (!platforms.includes(platform)) {
    return `${head}There are packages for ${platforms.join(", ")}; elsewhere, build it from source.`;
  }
  return (
    `${head}It is in the package ${enginePackage(platform)}, which is not installed. npm leaves it out with ` +
    "--omit=optional, and where node_modules or the lock file came from another platform. " +
    `Install it: npm install ${enginePackage(platform)}@${version}`
  );
}
