// The session: this tab's keys and what the gateway permits them to do.
import { computed, signal } from "@preact/signals";
import { askJson, Refused, words } from "./api.ts";
import { remember, remembered } from "./storage.ts";

export type Role = "client" | "admin";
export type Kind =
  | "text"
  | "embedding"
  | "rerank"
  | "moderation"
  | "speech"
  | "transcription"
  | "image"
  | "video";

export interface EmbeddingLimits {
  dimensions: number;
}

export interface ImageLimits {
  sizes: string[] | null;
  max_resolution: string;
  max_n: number;
  max_prompt_characters: number | null;
  quality: boolean;
  style: boolean;
  features: string[];
}

export interface VideoLimits {
  min_duration_s: number | null;
  max_duration_s: number | null;
  resolutions: string[];
  aspect_ratios: string[];
  features: string[];
}

export interface Model {
  id: string;
  aliases: string[];
  kind: Kind;
  family: string;
  protocols: string[];
  simulated: boolean;
  limits: EmbeddingLimits | ImageLimits | VideoLimits | TextLimits | null;
  /** `null`: unknown, or it depends on the upstream that answers. */
  price: Price | null;
}

export interface TextLimits {
  max_output_tokens: number | null;
  /** Maximum number of tokens of prompt and answer together. */
  context_tokens: number | null;
}

/** Prices per million tokens. */
export interface TokenPrice {
  input: number;
  output: number;
  cached_input: number | null;
  cache_write: number | null;
  reasoning: number | null;
}

export interface Price {
  tokens: TokenPrice;
  /** For prompts of more tokens than `above`. */
  tiers: { above: number; tokens: TokenPrice }[];
  image: number | null;
  video_second: number | null;
  /** Of a sound that is transcribed. */
  audio_second: number | null;
  /** A million of them, read aloud. */
  speech_characters: number | null;
}

/** The gateway's description of a key. */
export interface About {
  role: Role;
  /** Its id. */
  key: string;
  /** Whether the gateway has an admin key. */
  admin: boolean;
  lasting: boolean;
  version: string;
  /** The currency of prices and costs, if the configuration names it. */
  currency: string | null;
  models: Model[];
}

const NAME = "gatewright.keys";

/** The keys of this tab. */
export const keys = signal<Partial<Record<Role, string>>>({});
/** Number of sign-outs. Responses to requests sent before the latest one are discarded. */
let departures = 0;
const abouts = signal<Partial<Record<Role, About>>>({});

/** What the gateway reported. The API key's view takes precedence; it may have fewer models. */
export const about = computed<About | null>(() => abouts.value.client ?? abouts.value.admin ?? null);
/** The key for the operations of clients: an API key, otherwise the admin key, which may call them, too. */
export const callerKey = computed(() => keys.value.client ?? keys.value.admin);
export const currency = computed(() => about.value?.currency ?? null);
/** The models of the gateway, as the admin key sees them. */
export const allModels = computed<Model[]>(() => abouts.value.admin?.models ?? []);
export const isSignedIn = computed(() => callerKey.value !== undefined);
/** Whether restored keys are being checked. */
export const isRestoring = signal(false);
/** Why restoring the keys failed. */
export const lost = signal<string | null>(null);

export const models = (kind: Kind): Model[] =>
  about.value?.models.filter((model) => model.kind === kind) ?? [];

/** Signs in with a key of either kind. Throws `Refused` if the gateway doesn't know it. */
export async function signIn(key: string): Promise<Role> {
  const before = departures;
  const found = await askJson<About>(key, "/console/session");
  if (departures !== before) return found.role;
  keys.value = { ...keys.value, [found.role]: key };
  abouts.value = { ...abouts.value, [found.role]: found };
  lost.value = null;
  remember(NAME, JSON.stringify(keys.value));
  return found.role;
}

/**
 * Signs in with the one-time code of the fragment, with which `gatewright serve --open` opens the page. Returns whether there is
 * one.
 */
export function signInByCode(): boolean {
  const code = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return false;
  // It stays neither in the address nor in the history.
  location.replace("#/");
  isRestoring.value = true;
  askJson<Record<Role, string | null>>(code, "/console/sign-in", { method: "POST" })
    .then((found) => Promise.all(Object.values(found).map((key) => key && signIn(key))))
    .catch((error: unknown) => {
      lost.value = words(error);
    })
    .finally(() => {
      isRestoring.value = false;
    });
  return true;
}

/** Fetches the keys' permissions again, because models may have changed. */
export async function refresh(): Promise<void> {
  await Promise.all(Object.values(keys.value).map((key) => signIn(key)));
}

export function signOut(): void {
  departures += 1;
  keys.value = {};
  abouts.value = {};
  remember(NAME, null);
}

/** Restores the keys that this tab had before it was reloaded. */
export function restore(): void {
  let saved: unknown;
  try {
    saved = JSON.parse(remembered(NAME) ?? "{}");
  } catch {
    saved = {};
  }
  const found = Object.values(saved ?? {}).filter((key): key is string => typeof key === "string");
  if (found.length === 0) return;
  isRestoring.value = true;
  Promise.all(found.map((key) => signIn(key)))
    .catch((error: unknown) => {
      // An unreachable gateway may come back. Drop the keys only if the gateway rejects one.
      if (error instanceof Refused && error.status === 401) signOut();
      lost.value = words(error);
    })
    .finally(() => {
      isRestoring.value = false;
    });
}
