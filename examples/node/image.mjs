// Generates an image and saves it as a PNG. Usage: node image.mjs [FILE]
import { Client } from "gatewright";

const file = process.argv[2] ?? "image.png";
const client = new Client();

const { data } = await client.images.generate({
  model: "image_model_2",
  prompt: "a lighthouse at dusk",
  size: "256x256",
  response_format: "b64_json",
});
const [image] = data;
if (image === undefined) throw new Error("no image came");
const bytes = await client.images.save(image, file);
console.log(`${file}: ${bytes} bytes`);
