// The package that is tested: that of this checkout, or an installed one.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);

/** Its folder. */
export const PACKAGE = dirname(require.resolve("gatewright/package.json"));

/** The file of its engine: in a checkout beside it, else in the package of the platform. */
export function enginePath() {
  const { engineFile, enginePackage, platformName } = require(join(PACKAGE, "dist/platform.js"));
  const beside = join(PACKAGE, engineFile());
  if (existsSync(beside)) return beside;
  const { resolve } = createRequire(join(PACKAGE, "dist/index.js"));
  return resolve(enginePackage(platformName()));
}
