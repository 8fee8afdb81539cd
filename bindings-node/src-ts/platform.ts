/** What the native module of a platform is called. Also used by `scripts/place-native.cjs`, which puts it there. */

/** `linux-x64-gnu`, `darwin-arm64`, …: operating system, processor and, on Linux, the C library. */
export function platformName(): string {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return name;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return `${name}-${header.glibcVersionRuntime === undefined ? "musl" : "gnu"}`;
}

/** File of the native module in the package's folder. */
export function nativeFile(): string {
  return `gatewright.${platformName()}.node`;
}
