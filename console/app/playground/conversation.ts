// A conversation as the playground stores it, independent of the protocol.

export interface Picture {
  name: string;
  /** Its media type. */
  type: string;
  base64: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON, as received. */
  arguments: string;
}

export interface ToolResult {
  id: string;
  name: string;
  output: string;
}

export interface Turn {
  role: "user" | "assistant";
  text: string;
  pictures: Picture[];
  calls: ToolCall[];
  results: ToolResult[];
}

export interface Tool {
  name: string;
  description?: string;
  parameters?: Record<string, unknown>;
}

export interface Settings {
  system: string;
  maxTokens: number | null;
  temperature: number | null;
  tools: Tool[];
}

/** A request in the format of its protocol. */
export interface Prepared {
  /** The operation's id. */
  operation: string;
  /** Path parameters. */
  path: Record<string, string>;
  query: Record<string, string>;
  body: Record<string, unknown>;
}

export const said = (text: string, pictures: Picture[] = []): Turn => ({
  role: "user",
  text,
  pictures,
  calls: [],
  results: [],
});

/** An example to start with. */
export const EXAMPLE_TOOLS = `[
  {
    "name": "get_weather",
    "description": "The current weather in a city.",
    "parameters": {
      "type": "object",
      "properties": { "city": { "type": "string" } },
      "required": ["city"]
    }
  }
]`;

/** Parses the tools typed by the user. Throws an error that says what is wrong. */
export function readTools(text: string): Tool[] {
  if (text.trim() === "") return [];
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new Error(`The tools aren't valid JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (!Array.isArray(read)) throw new Error("The tools must be a JSON array.");
  return read.map((tool: unknown, index) => {
    const { name, description, parameters } = (tool ?? {}) as Record<string, unknown>;
    if (typeof name !== "string" || name === "") throw new Error(`Tool ${index + 1} has no name.`);
    return {
      name,
      ...(typeof description === "string" ? { description } : {}),
      ...(parameters !== null && typeof parameters === "object"
        ? { parameters: parameters as Record<string, unknown> }
        : {}),
    };
  });
}

/** The parsed JSON object, or an empty one. */
export function object(text: string): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(text);
    if (read !== null && typeof read === "object" && !Array.isArray(read))
      return read as Record<string, unknown>;
  } catch {
    // A truncated call.
  }
  return {};
}
