// Reads image files that the user chose.
import type { Picture } from "./conversation.ts";

/** Maximum size of an image, in bytes: it must fit into a body in base64, with the rest of the conversation. */
export const LONGEST_PICTURE = 5 * 1024 * 1024;
export const MOST_PICTURES = 4;
export const PICTURE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export function readPicture(file: File): Promise<Picture> {
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
