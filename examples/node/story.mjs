// The whole service in one file: runs every operation once. `cargo xtask demo` runs it.
//
// Usage: GATEWRIGHT_BASE_URL=… GATEWRIGHT_API_KEY=… node story.mjs FOLDER
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BadRequestError, Client, report } from "gatewright";

const folder = process.argv[2] ?? ".";
const client = new Client();

const models = await client.models.list();
console.log("models:", models.data.map((model) => model.id).join(", "));
console.log("model:", (await client.models.retrieve(models.data[0].id)).owned_by);

const completion = await client.chat.completions.create({
  model: "model-sol",
  messages: [{ role: "user", content: "Reply with exactly: good morning" }],
});
console.log("chat:", completion.choices[0].message.content);

let text = "";
const stream = await client.chat.completions.create({
  model: "model-breeze",
  messages: [{ role: "user", content: "Tell me about rivers." }],
  stream: true,
});
for await (const chunk of stream) {
  for (const choice of chunk.choices) text += choice.delta.content ?? "";
}
console.log("stream:", text);

const response = await client.responses.create({
  model: "model-terra",
  input: "Reply with exactly: a response",
});
for (const item of response.output) {
  if (item.type !== "message") continue;
  for (const part of item.content) {
    if (part.type === "output_text") console.log("responses:", part.text);
  }
}

const names = [];
for await (const event of await client.responses.create({
  model: "model-terra",
  input: "Tell me about lakes.",
  stream: true,
})) {
  names.push(event.type);
}
console.log("responses stream:", names[0], "to", names.at(-1));

const content = await client.native.generateContent({
  model: "model-luna",
  contents: [{ parts: [{ text: "Reply with exactly: native content" }] }],
});
const parts = (content.candidates ?? []).flatMap((candidate) => candidate.content?.parts ?? []);
console.log("native:", parts.map((part) => part.text ?? "").join(""));
const nativeModels = await client.native.models.list();
console.log("native models:", nativeModels.models.length);
const nativeModel = await client.native.models.get(nativeModels.models[0].name);
console.log("native model:", nativeModel.name, nativeModel.baseModelId);

const image = await client.images.generate({
  model: "image_model_2",
  prompt: "a lighthouse at dusk",
  size: "256x256",
  response_format: "b64_json",
});
const picture = Buffer.from(image.data[0].b64_json ?? "", "base64");
await writeFile(join(folder, "image.png"), picture);
console.log("image: PNG of", picture.length, "bytes");

const task = await client.videos.generations.createAndWait(
  { model: "video_model_4", prompt: "waves on a beach", duration: 3, resolution: "720p" },
  { intervalMs: 200 },
);
const { output } = task;
if (output === undefined) throw new Error("a completed task has an output");
const video = await fetch(output.url);
await writeFile(join(folder, "video.mp4"), Buffer.from(await video.arrayBuffer()));
console.log("video:", task.status, output.resolution, `${output.duration} s`, output.format);

try {
  await client.images.generate({ model: "image_model_1", prompt: "two cats", n: 2, size: "512x512" });
} catch (error) {
  if (!(error instanceof BadRequestError)) throw error;
  console.log("refused:", error.status, error.code, error.param);
}

for (const name of ["good", "broken"]) {
  const document = await readFile(new URL(`../reports/${name}.json`, import.meta.url));
  const result = report.validate(document);
  console.log(`${name} report:`, result.valid ? "valid" : "invalid");
  for (const violation of result.violations) {
    console.log(`  ${violation.line}:${violation.column} ${violation.pointer} ${violation.rule}`);
  }
}
