// Imports a client, creates one and prints the process's cost so far: `start.mjs bare|ours|openai`.
import { readFileSync } from "node:fs";

const way = process.argv[2];
let client;
if (way === "ours") {
  const { Client } = await import("gatewright");
  client = new Client({ baseUrl: "http://127.0.0.1:9", apiKey: "none" });
} else if (way === "openai") {
  const { default: OpenAI } = await import("openai");
  client = new OpenAI({ baseURL: "http://127.0.0.1:9", apiKey: "none" });
}
const { user, system } = process.cpuUsage();
const peak = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))[1]);
if (way !== "bare" && !client) throw new Error("no client was made");
console.log(JSON.stringify({ operations: 1, cpu_us: user + system, wall_us: 0, peak_kb: peak, answer: 1 }));
