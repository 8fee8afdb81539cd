/** The forms in which a request takes a file. */

import type { EngineFile } from "./engine";
import type { Operation } from "./operation";

/** Content with a name and a media type. */
export interface NamedFile {
  /** Name of the file, without folders. */
  readonly name: string;
  /** The content. */
  readonly data: Uint8Array | ArrayBuffer | Blob;
  /** Media type. */
  readonly type?: string;
}

/**
 * A file in a request: a `Buffer` or another `Uint8Array`, an `ArrayBuffer`, a `Blob` or `File`, or content
 * with a name. Without a name, it gets the name of its parameter. Each attempt of a call sends the same
 * bytes.
 */
export type FileArgument = Uint8Array | ArrayBuffer | Blob | NamedFile;

/**
 * The files among the parameters of a call. `maxBytes`: of one file; a longer one is not read.
 *
 * Errors: TypeError for anything else; RangeError.
 */
export async function readFiles(
  operation: Operation,
  params: Readonly<Record<string, unknown>>,
  maxBytes: number,
): Promise<EngineFile[]> {
  const files: EngineFile[] = [];
  for (const member of operation.files ?? []) {
    const given = params[member];
    if (given === undefined || given === null) continue;
    for (const file of Array.isArray(given) ? given : [given]) {
      files.push(await read(`${operation.name}: ${member}`, member, file, maxBytes));
    }
  }
  return files;
}

async function read(place: string, member: string, file: unknown, maxBytes: number): Promise<EngineFile> {
  const bytes = bytesOf(file);
  if (bytes !== undefined) return { member, name: member, data: bytes };
  if (isBlob(file)) {
    const data = await contentOf(place, file, maxBytes);
    return { member, name: nameOf(file) ?? member, data, ...typeOf(file.type) };
  }
  if (typeof file === "object" && file !== null && "data" in file) {
    const { name, data, type } = file as Partial<Record<keyof NamedFile, unknown>>;
    if (typeof name !== "string") throw new TypeError(`${place}: name must be a string, not ${kindOf(name)}`);
    if (type !== undefined && typeof type !== "string") {
      throw new TypeError(`${place}: type must be a string, not ${kindOf(type)}`);
    }
    const own = bytesOf(data);
    if (own !== undefined) return { member, name, data: own, ...typeOf(type) };
    if (isBlob(data)) {
      return { member, name, data: await contentOf(place, data, maxBytes), ...typeOf(type ?? data.type) };
    }
    throw new TypeError(`${place}: data must be bytes or a Blob, not ${kindOf(data)}`);
  }
  throw new TypeError(`${place} must be a file (bytes, a Blob, or { name, data }), not ${kindOf(file)}`);
}

/** The name of a `File`, which is a `Blob` with a name. */
function nameOf(blob: Blob & { readonly name?: unknown }): string | undefined {
  return typeof blob.name === "string" ? blob.name : undefined;
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}

function isBlob(value: unknown): value is Blob {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as Partial<Blob>).arrayBuffer === "function" &&
    typeof (value as Partial<Blob>).size === "number"
  );
}

async function contentOf(place: string, blob: Blob, maxBytes: number): Promise<Uint8Array> {
  if (blob.size > maxBytes) {
    throw new RangeError(`${place}: the file is longer than ${maxBytes} bytes, the maximum`);
  }
  return new Uint8Array(await blob.arrayBuffer());
}

/** A media type, unless it is unknown. */
function typeOf(type: string | undefined): Pick<EngineFile, "type"> {
  return type === undefined || type === "" ? {} : { type };
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}
