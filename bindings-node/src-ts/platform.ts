/** The name of the engine's file on a platform. `scripts/place-engine.cjs`, which puts it there, uses it too. */

/** `linux-x64-gnu`, `darwin-arm64`, …: operating system, processor and, on Linux, the C library. */
export function platformName(): string {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return name;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return `${name}-${header.glibcVersionRuntime === undefined ? "musl" : "gnu"}`;
}

/** The engine's file in the package's folder. */
export function engineFile(): string {
  return `gatewright.${platformName()}.node`;
}
