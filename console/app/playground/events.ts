// Reads server-sent events.

/** Maximum length of an event, in characters. */
const MAX_CHARS = 16 * 1024 * 1024;

/** The data of an event, and the time at which its last bytes arrived, as `performance.now` gives it. */
export interface Received {
  data: string;
  at: number;
}

/** The events of a response, as they arrive. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Received> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const at = performance.now();
      rest += value;
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { data: data.join("\n"), at };
          data = [];
        } else if (line.startsWith("data:")) {
          data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
        }
      }
      if (rest.length + data.reduce((sum, part) => sum + part.length, 0) > MAX_CHARS) {
        throw new Error("A stream event is too long.");
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
