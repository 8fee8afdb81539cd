// A gateway that has been in use: every list in the console has rows.
import { createServer } from "node:http";
import { ADMIN_KEY, startGateway } from "./support.mjs";

/** The models of the catalog, with prices. One has its own upstream, which is down. */
const text = ["sol", "terra", "luna", "aurora", "breeze", "cedar"].map((name) => `model-${name}`);
const others = ["image_model_", "video_model_"].flatMap((name) =>
  [1, 2, 3, 4].map((number) => name + number),
);
const target = (upstream, model, order) =>
  `{ upstream = "${upstream}", model = "${model}", order = ${order}, price = { input = 400.0, output = 900.0 } }`;
const targets = (model) =>
  model === "model-luna"
    ? [target("away", "luna-2026", 0), target("simulator", model, 1)]
    : [target("simulator", model, 0)];
const config = `
[upstreams.away]
kind = "chat"
base_url = "http://127.0.0.1:9/v1"
key = { env = "UPSTREAM_KEY" }
[upstreams.simulator]
kind = "simulator"
${[...text, ...others].map((model) => `[models.${model}]\ntargets = [${targets(model)}]\n`).join("")}`;

/** Starts the gateway with keys, requests, video tasks and notifications, some of which failed. */
export async function startGatewayInUse() {
  const receiver = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(request.url === "/gone" ? 404 : 204).end());
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => receiver.once("listening", resolve));
  const gateway = await startGateway({
    arguments: ["--allow-private-webhooks"],
    config,
    environment: { UPSTREAM_KEY: "none" },
  });
  await use(gateway, `http://127.0.0.1:${receiver.address().port}`);
  return {
    ...gateway,
    async stop() {
      await gateway.stop();
      receiver.close();
    },
  };
}

async function use(gateway, receiverUrl) {
  for (const name of ["mobile app", "nightly report"]) {
    const body = {
      name,
      scopes: { models: ["model-*", "video_model_*"], operations: [] },
      limits: { requests_per_minute: 60 },
    };
    const made = await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body });
    const { secret } = await made.json();
    for (const model of ["model-sol", "model-breeze", ...Array(3).fill("model-luna")]) {
      const question = { model, messages: [{ role: "user", content: `Tell me about ${name}.` }] };
      await gateway.call("/v1/chat/completions", { key: secret, method: "POST", body: question });
    }
    for (const [prompt, webhook_url] of [
      [`waves of the ${name}`, `${receiverUrl}/hook`],
      ["[fail: the prompt was refused by the provider]", `${receiverUrl}/gone`],
    ]) {
      const model = "video_model_4";
      const video = { model, prompt, duration: 3, resolution: "720p", webhook_url };
      await gateway.call("/v1/videos/generations", { key: secret, method: "POST", body: video });
    }
  }
  await gateway.call("/v1/chat/completions", { method: "POST", body: { model: "model-sol" } });
}
