/** Names that callers of other SDKs look for: a sentence that says what to do, in place of `undefined`. */

import {
  ChatCompletionsResource,
  ImagesResource,
  MessagesResource,
  ModelsResource,
  ResponsesResource,
  VideosResource,
} from "./generated/resources";
import { Resources } from "./resources";

/** By name, what other SDKs have there. */
type Names = Readonly<Record<string, string>>;
type Class = abstract new (...made: never[]) => object;

const STORED = "stored chat completions";

/** `lacking`: what this client does not have; `elsewhere`: where it has it. */
const PLACES: readonly { place: string; owner: Class; lacking?: Names; elsewhere?: Names }[] = [
  {
    place: "client",
    owner: Resources,
    lacking: {
      caches: "caches of contents",
      chats: "chat sessions",
      completions: "text completions beside client.chat.completions",
      containers: "containers",
      conversations: "conversations beside previous_response_id of responses",
      evals: "evaluations",
      fineTuning: "fine-tuning",
      live: "live sessions",
      realtime: "realtime sessions",
      tunings: "tuning",
      uploads: "uploads",
      vectorStores: "vector stores",
    },
    elsewhere: {
      beta:
        "Gatewright has its operations on the client itself: client.beta.chat.completions.parse is " +
        "client.chat.completions.parse, client.beta.messages is client.messages",
    },
  },
  {
    place: "client.chat.completions",
    owner: ChatCompletionsResource,
    lacking: { delete: STORED, list: STORED, messages: STORED, retrieve: STORED, update: STORED },
  },
  {
    place: "client.images",
    owner: ImagesResource,
    lacking: { createVariation: "variations of images", edit: "edits of images" },
  },
  { place: "client.messages", owner: MessagesResource, lacking: { batches: "batches" } },
  {
    place: "client.models",
    owner: ModelsResource,
    lacking: { delete: "deletion of models" },
    elsewhere: {
      countTokens: "here it is client.native.countTokens",
      embedContent: "here it is client.embeddings.create",
      generateContent: "here it is client.native.generateContent",
      generateContentStream: "here it is client.native.streamGenerateContent",
      generateImages: "here it is client.images.generate",
      generateVideos: "here it is client.videos.generations.create",
    },
  },
  {
    place: "client.responses",
    owner: ResponsesResource,
    lacking: {
      cancel: "cancellation of responses in the background",
      inputTokens: "token counts of responses",
    },
  },
  {
    place: "client.videos",
    owner: VideosResource,
    lacking: { delete: "deletion of videos", list: "lists of videos", remix: "remixes of videos" },
    elsewhere: {
      create: "here it is client.videos.generations.create",
      createAndPoll: "here it is client.videos.generations.createAndWait",
      downloadContent: "here it is client.videos.generations.save",
      poll: "here it is client.videos.generations.wait",
      retrieve: "here it is client.videos.generations.retrieve",
    },
  },
];

/** Reading such a name throws a TypeError that says what to do. */
export function explainMissing(): void {
  for (const { place, owner, lacking = {}, elsewhere = {} } of PLACES) {
    const explain = (name: string, sentence: string) => {
      const get = () => {
        throw new TypeError(`${place}.${name}: ${sentence}`);
      };
      // Not enumerable, so that only direct access finds it.
      Object.defineProperty(owner.prototype, name, { get, configurable: true });
    };
    for (const [name, what] of Object.entries(lacking)) {
      explain(name, `Gatewright has no ${what} yet; call this API of your provider with its own SDK`);
    }
    for (const [name, where] of Object.entries(elsewhere)) explain(name, where);
  }
}
