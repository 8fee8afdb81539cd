// Takes the pictures of the docs: every page as it is in use, in both schemes, wide and narrow.
import { mkdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { ADMIN_KEY, KEY, startBrowser, startGateway } from "./support.mjs";

/** Where the pictures of the docs are. All that are taken go elsewhere if a folder is named. */
const everywhere = process.argv[2];
const docs = new URL("../../docs/pictures", import.meta.url).pathname;
const receiver = createServer((request, response) => {
  request.resume().on("end", () => response.writeHead(request.url === "/gone" ? 404 : 204).end());
}).listen(0, "127.0.0.1");
await new Promise((resolve) => receiver.once("listening", resolve));
const told = `http://127.0.0.1:${receiver.address().port}`;

/** The models of the catalog, with prices; one has a provider of its own, which is away. */
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
const [gateway, browser] = await Promise.all([
  startGateway({ arguments: ["--allow-private-webhooks"], config, environment: { UPSTREAM_KEY: "none" } }),
  startBrowser(),
]);

for (const name of ["mobile app", "nightly report"]) {
  const body = {
    name,
    scopes: { models: ["model-*", "video_model_*"], operations: [] },
    limits: { requests_per_minute: 60 },
  };
  const made = await gateway.call("/admin/keys", { key: ADMIN_KEY, method: "POST", body });
  const { secret } = await made.json();
  for (const model of ["model-sol", "model-breeze", ...Array(3).fill("model-luna")]) {
    const asked = { model, messages: [{ role: "user", content: `Tell me about ${name}.` }] };
    await gateway.call("/v1/chat/completions", { key: secret, method: "POST", body: asked });
  }
  for (const [prompt, webhook_url] of [
    [`waves of the ${name}`, `${told}/hook`],
    ["[fail: the prompt was refused by the provider]", `${told}/gone`],
  ]) {
    const model = "video_model_4";
    const asked = { model, prompt, duration: 3, resolution: "720p", webhook_url };
    await gateway.call("/v1/videos/generations", { key: secret, method: "POST", body: asked });
  }
}
await gateway.call("/v1/chat/completions", { method: "POST", body: { model: "model-sol" } });

/** What is done on a page before its picture is taken. */
const DOING = {
  playground: async (page) => {
    await page.getByLabel("Two models side by side").check();
    await page.getByLabel("Second model").selectOption("model-breeze");
    await page.getByRole("textbox", { name: "Message" }).fill("Tell me about rivers, in three sentences.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("Ended by").nth(1).waitFor();
  },
  "playground/images": async (page) => {
    await page.getByLabel("Model").selectOption("image_model_2");
    await page.getByLabel("Size").selectOption("512x512");
    await page.getByRole("button", { name: "Draw" }).click();
    await page.locator(".gallery img").waitFor();
  },
  reports: async (page) => {
    const file = new URL("../../examples/reports/good.json", import.meta.url).pathname;
    await page.locator("input[type=file]").first().setInputFiles(file);
    await page.frameLocator("iframe.report").getByRole("heading", { name: "Checks and models" }).waitFor();
  },
  "reference/create_message": async () => {},
  models: async () => {},
  requests: async (page) => page.getByRole("region", { name: "The newest first" }).waitFor(),
  usage: async (page) => page.locator(".chart rect").first().waitFor({ timeout: 20_000 }),
  upstreams: async () => {},
  tasks: async (page) => {
    await page.getByText("completed", { exact: true }).nth(1).waitFor();
    await page.getByText("failed", { exact: true }).nth(1).waitFor();
  },
  webhooks: async (page) => {
    await page.getByText("delivered", { exact: true }).nth(1).waitFor();
    await page.getByText("status 404").first().waitFor();
  },
  keys: async () => {},
};
/** Pictures that the guide shows, and no others: the page, the width and the scheme. */
const guide = await readFile(new URL("../../docs/guides/console.md", import.meta.url), "utf8");
const SHOWN = new Set([...guide.matchAll(/pictures\/console-([\w-]+)\.png/g)].map(([, name]) => name));

await mkdir(everywhere ?? docs, { recursive: true });
for (const width of [1280, 360]) {
  for (const scheme of ["light", "dark"]) {
    const tab = await browser.open(gateway, { width, height: width > 600 ? 860 : 740, scheme });
    const take = async (name) => {
      const whole = `${name.replaceAll("/", "-")}-${width}-${scheme}`;
      if (everywhere) await tab.page.screenshot({ path: `${everywhere}/${whole}.png`, fullPage: true });
      else if (SHOWN.delete(whole)) await tab.page.screenshot({ path: `${docs}/console-${whole}.png` });
    };
    await take("sign-in");
    await tab.signIn(KEY);
    await tab.go("keys");
    await tab.page.getByLabel("Admin key").waitFor();
    await tab.signIn(ADMIN_KEY);
    for (const [path, act] of Object.entries(DOING)) {
      await tab.go(path);
      await tab.page.getByText("Loading …").waitFor({ state: "detached" });
      await act(tab.page);
      await take(path);
    }
    await tab.close();
  }
}
await Promise.all([gateway.stop(), browser.close()]);
receiver.close();
if (!everywhere && SHOWN.size > 0)
  throw new Error(`the guide shows ${[...SHOWN].join(", ")}, which no page is`);
