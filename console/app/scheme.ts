// Light or dark: the system's setting, unless overridden here.
import { signal } from "@preact/signals";
import { remember, remembered } from "./storage.ts";

export const SCHEMES = ["system", "light", "dark"] as const;
export type Scheme = (typeof SCHEMES)[number];

const NAME = "gatewright.scheme";
export const scheme = signal<Scheme>(SCHEMES.find((known) => known === remembered(NAME)) ?? "system");

/** Applies the chosen scheme to the page. */
export function applyScheme(): void {
  const root = document.documentElement;
  if (scheme.value === "system") delete root.dataset["scheme"];
  else root.dataset["scheme"] = scheme.value;
}

export function choose(chosen: Scheme): void {
  scheme.value = chosen;
  remember(NAME, chosen === "system" ? null : chosen);
  applyScheme();
}
