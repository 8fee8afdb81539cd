/** The static description of an operation: a row of the generated table. */

/** How the parameters of one operation are sent, and whether its response is a stream. */
export interface Operation {
  /** `operationId` in the specification. */
  readonly id: string;
  /** The method as callers write it: `chat.completions.create`. */
  readonly name: string;
  /** Parameters filled into the path, in path order. */
  readonly path: readonly string[];
  /** Parameters sent in the query. */
  readonly query: readonly string[];
  /** Parameters sent as headers. */
  readonly headers: readonly string[];
  /** Members of the JSON body, as which the remaining parameters are sent; null if there is none. */
  readonly body: readonly string[] | null;
  /** Members of the body that are files, which is then sent as a form. */
  readonly files?: readonly string[];
  /** Whether the response is a stream: never, always, or if this member of the body is `true`, or the word. */
  readonly stream: boolean | string | { readonly parameter: string; readonly word: string };
  /** The type of the whole response, if it is not JSON. */
  readonly answer?: "nothing" | "text" | "bytes";
  /** The values of a member of the body with which the response is text instead of JSON. */
  readonly textForm?: { readonly parameter: string; readonly values: readonly string[] };
  /** Member of the result whose items iteration over the result yields. */
  readonly iterable?: string;
  /** A member that the result has in addition to those of the response. */
  readonly text?: JoinedText;
}

/** A member that is not in the response: the texts of all parts of one kind, joined. */
export interface JoinedText {
  /** Name of the member. */
  readonly name: string;
  /** Arrays on the path to the parts, outermost first. */
  readonly path: readonly string[];
  /** `type` of the parts that count. */
  readonly type: string;
  /** Member of a part that contains its text. */
  readonly member: string;
  /** Members of the operation's events that contain such a document. */
  readonly events: readonly string[];
}
