// An image, saved as a PNG. Usage: node image.mjs [FILE]
import { writeFile } from "node:fs/promises";
import { Client } from "gatewright";

const file = process.argv[2] ?? "image.png";
const client = new Client();

const { data } = await client.images.generate({
  model: "image_model_2",
  prompt: "a lighthouse at dusk",
  size: "256x256",
  response_format: "b64_json",
});
const png = Buffer.from(data[0]?.b64_json ?? "", "base64");
await writeFile(file, png);
console.log(`${file}: ${png.length} bytes`);
