/** What the engine's file and its package are called on a platform. The programs in `scripts/` use it too. */

import { closeSync, openSync, readSync } from "node:fs";

/** Where the name of a program's loader is: behind the headers of its file. */
const HEADERS_BYTES = 4096;

/**
 * `linux-x64-gnu`, `darwin-arm64`, …: operating system, processor and, on Linux, the C library, on Windows the
 * compiler's. Those that packages are made for are in `platforms.json`.
 */
export function platformName(): string {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform === "linux") return `${name}-${isMusl() ? "musl" : "gnu"}`;
  return process.platform === "win32" ? `${name}-msvc` : name;
}

/** The engine's file, in the package of its platform or, in a checkout, in this one. */
export function engineFile(platform = platformName()): string {
  return `gatewright.${platform}.node`;
}

/** The package that holds the engine of a platform. */
export function enginePackage(platform: string): string {
  return `@gatewright/${platform}`;
}

/** The package that holds the program of the server for a platform. */
export function serverPackage(platform: string): string {
  return `@gatewright/server-${platform}`;
}

/** The program's file, in the folder `bin` of that package. */
export function serverProgramFile(platform: string): string {
  return platform.startsWith("win32-") ? "gatewright-server.exe" : "gatewright-server";
}

/** Whether this program was made for musl: as its loader is called or, where that is unknown, as its report says. */
function isMusl(): boolean {
  const headers = beginOf(process.execPath);
  if (headers.includes("/ld-musl-")) return true;
  if (headers.includes("/ld-linux")) return false;
  // Takes milliseconds, and the longer the more sockets there are.
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined;
}

/** The first bytes of a file as text; none of them if it cannot be read. */
function beginOf(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const bytes = Buffer.alloc(HEADERS_BYTES);
      return bytes.toString("latin1", 0, readSync(file, bytes, 0, HEADERS_BYTES, 0));
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}
