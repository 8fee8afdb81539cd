// A conversation as the playground stores it, independent of the protocol.

export interface Attachment {
  name: string;
  /** Its media type. */
  type: string;
  base64: string;
  /** The content of a pasted text, instead of `base64`. */
  text?: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON, as received. */
  arguments: string;
  /** Opaque text of the provider that is sent back with the call. */
  signature?: string;
}

export interface ToolResult {
  id: string;
  name: string;
  output: string;
}

/** A part of the model's reasoning. */
export interface Thought {
  text: string;
  /** Opaque text of the provider that is sent back with the thought; empty if there is none. */
  signature: string;
}

export interface Turn {
  role: "user" | "assistant";
  text: string;
  thoughts: Thought[];
  files: Attachment[];
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
  topP: number | null;
  /** Texts at which generation ends. */
  stop: string[];
  seed: number | null;
  /** How much the model reasons; empty if that isn't stated. */
  effort: string;
  /** The JSON Schema that the answer must follow. */
  schema: Record<string, unknown> | null;
  tools: Tool[];
  /** `auto`, `required`, `none`, or the name of the tool to call; empty if that isn't stated. */
  toolChoice: string;
  stream: boolean;
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

export const userTurn = (text: string, files: Attachment[] = []): Turn => ({
  role: "user",
  text,
  thoughts: [],
  files,
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

/** Parses the JSON Schema typed by the user. Throws an error that says what is wrong. */
export function readSchema(text: string): Record<string, unknown> | null {
  if (text.trim() === "") return null;
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new Error(`The JSON schema isn't valid JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (read === null || typeof read !== "object" || Array.isArray(read)) {
    throw new Error("The JSON schema must be a JSON object.");
  }
  return read as Record<string, unknown>;
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
