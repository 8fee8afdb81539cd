// A video: submitted, waited for, saved. Usage: node video.mjs [FILE]
import { writeFile } from "node:fs/promises";
import { Client } from "gatewright";

const file = process.argv[2] ?? "video.mp4";
const client = new Client();

const task = await client.videos.generations.createAndWait(
  { model: "video_model_4", prompt: "waves on a beach", duration: 3, resolution: "720p" },
  { intervalMs: 500, timeoutMs: 120_000 },
);
if (task.output === undefined) throw new Error(`task ${task.id} has no output`);
const video = await fetch(task.output.url);
await writeFile(file, Buffer.from(await video.arrayBuffer()));
console.log(`${file}: ${task.output.duration} s of ${task.output.format}, ${task.output.resolution}`);
