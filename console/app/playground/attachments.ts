// Reads files that the user chose.
import { bytes } from "../ui/format.ts";
import type { Attachment, Turn } from "./conversation.ts";

/** Maximum size of a file, in bytes: it must fit into a body in base64, with the rest of the conversation. */
export const MAX_FILE_BYTES = 5 * 1024 * 1024;
export const MAX_FILES = 4;
/** Maximum length of a pasted text that goes into the message field, in characters: a longer one is a file, since browsers lay out the
 * whole field for each key. */
export const MAX_TYPED = 20_000;

export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
export const PDF_TYPES = ["application/pdf"];
/** The media types of audio, and the names that the chat protocol has for them. */
export const AUDIO_FORMATS: Record<string, string> = {
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/mpeg": "mp3",
};
export const AUDIO_TYPES = Object.keys(AUDIO_FORMATS);

/** The media type of pasted texts. Every protocol takes them, as part of the message. */
export const TEXT_TYPE = "text/plain";

/** A pasted text as a file. */
export function pasted(text: string, number: number): Attachment {
  return {
    name: `pasted text ${number} (${bytes(new Blob([text]).size)})`,
    type: TEXT_TYPE,
    base64: "",
    text,
  };
}

/** A turn whose pasted texts are part of its text. */
export function withTexts(turn: Turn): Turn {
  const texts = turn.files.flatMap(({ text }) => (text === undefined ? [] : [text]));
  if (texts.length === 0) return turn;
  const files = turn.files.filter(({ text }) => text === undefined);
  return { ...turn, files, text: [turn.text, ...texts].filter((part) => part !== "").join("\n\n") };
}

export function readAttachment(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(new Error(`Can't read ${file.name}.`));
    reader.onload = () => {
      const base64 = String(reader.result).split(",", 2)[1] ?? "";
      resolve({ name: file.name, type: file.type, base64 });
    };
    reader.readAsDataURL(file);
  });
}
