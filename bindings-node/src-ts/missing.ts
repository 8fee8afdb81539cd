/** What other SDKs have and this client does not: a sentence in place of `undefined`. */

import { ImagesResource, MessagesResource, ResponsesResource } from "./generated/resources";
import { Resources } from "./resources";

/** Names that callers of other SDKs look for, and what they are. */
type Names = Readonly<Record<string, string>>;
type Class = abstract new (...made: never[]) => object;

const MISSING: readonly (readonly [place: string, lacking: Class, names: Names])[] = [
  [
    "client",
    Resources,
    {
      completions: "text completions beside client.chat.completions",
      files: "files",
      uploads: "uploads",
      batches: "batches",
      fineTuning: "fine-tuning",
      vectorStores: "vector stores",
      realtime: "realtime sessions",
      conversations: "conversations beside previous_response_id of responses",
      containers: "containers",
      evals: "evaluations",
      beta: "beta operations",
    },
  ],
  ["client.images", ImagesResource, { edit: "edits of images", createVariation: "variations of images" }],
  ["client.responses", ResponsesResource, { cancel: "cancellation of responses in the background" }],
  ["client.messages", MessagesResource, { batches: "batches" }],
];

/** Reading such a name throws a TypeError that says what to do. */
export function explainMissing(): void {
  for (const [place, { prototype }, names] of MISSING) {
    for (const [name, what] of Object.entries(names)) {
      const get = () => {
        throw new TypeError(
          `${place}.${name}: Gatewright has no ${what} yet; call this API of your provider with its own SDK`,
        );
      };
      // Not enumerable, so that only direct access finds it.
      Object.defineProperty(prototype, name, { get, configurable: true });
    }
  }
}
