/** The name of the engine's file on a platform. `scripts/place-engine.cjs`, which puts it there, uses it too. */

import { closeSync, openSync, readSync } from "node:fs";

/** Where the name of a program's loader is: behind the headers of its file. */
const HEADERS_BYTES = 4096;

/** `linux-x64-gnu`, `darwin-arm64`, …: operating system, processor and, on Linux, the C library. */
export function platformName(): string {
  const name = `${process.platform}-${process.arch}`;
  return process.platform === "linux" ? `${name}-${isMusl() ? "musl" : "gnu"}` : name;
}

/** The engine's file in the package's folder. */
export function engineFile(): string {
  return `gatewright.${platformName()}.node`;
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
