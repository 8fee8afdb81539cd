// Submits a video, waits for it, and saves it. Usage: node video.mjs [FILE]
import { Client } from "gatewright";

const file = process.argv[2] ?? "video.mp4";
const client = new Client();

const task = await client.videos.generations.createAndWait(
  { model: "video_model_4", prompt: "waves on a beach", duration: 3, resolution: "720p" },
  {
    intervalMs: 500,
    timeoutMs: 120_000,
    onProgress: ({ id, status }) => console.log(`${id} is ${status}`),
  },
);
const bytes = await client.videos.generations.save(task, file);
console.log(`${file}: ${bytes} bytes`);
