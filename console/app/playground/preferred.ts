// The models that the user chose to try, by kind.
import { effect, signal } from "@preact/signals";
import { isSignedIn, type Kind } from "../session.ts";

export const preferred = signal<Partial<Record<Kind, string>>>({});

effect(() => {
  if (!isSignedIn.value) preferred.value = {};
});
