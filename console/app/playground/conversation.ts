// A conversation as the playground keeps it, whichever protocol says it.

export interface Picture {
  name: string;
  /** Its media type. */
  type: string;
  base64: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON, as it arrived. */
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

/** A request, in the words of its protocol. */
export interface Prepared {
  /** The id of its operation. */
  operation: string;
  /** Parameters of the path. */
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

/** An example, to begin with. */
export const EXAMPLE_TOOLS = `[
  {
    "name": "get_weather",
    "description": "The weather of a city now.",
    "parameters": {
      "type": "object",
      "properties": { "city": { "type": "string" } },
      "required": ["city"]
    }
  }
]`;

/** Reads the tools that were typed in. Throws an error that says what is wrong. */
export function readTools(text: string): Tool[] {
  if (text.trim() === "") return [];
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new Error(`The tools are not JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (!Array.isArray(read)) throw new Error("The tools must be a list, in brackets.");
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

/** An object of JSON, or an empty one. */
export function object(text: string): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(text);
    if (read !== null && typeof read === "object" && !Array.isArray(read))
      return read as Record<string, unknown>;
  } catch {
    // A call that was cut short.
  }
  return {};
}
