// Takes the screenshots for the docs: every page in use, in both schemes, wide and narrow.
import { mkdir, readFile } from "node:fs/promises";
import { startGatewayInUse } from "./in-use.mjs";
import { ADMIN_KEY, KEY, startBrowser } from "./support.mjs";

/** The folder of the docs' pictures. If an argument names another folder, all pictures go there instead. */
const everywhere = process.argv[2];
const docs = new URL("../../docs/pictures", import.meta.url).pathname;
const [gateway, browser] = await Promise.all([startGatewayInUse(), startBrowser()]);

/** Actions on a page before its picture is taken. */
const DOING = {
  playground: async (page) => {
    await page.getByLabel("Two models side by side").check();
    await page.getByLabel("Second model").selectOption("model-breeze");
    await page.getByRole("textbox", { name: "Message" }).fill("Tell me about rivers, in three sentences.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("Finish reason").nth(1).waitFor();
  },
  "playground/images": async (page) => {
    await page.getByLabel("Model", { exact: true }).selectOption("image_model_2");
    await page.getByLabel("Size").selectOption("512x512");
    await page.getByRole("button", { name: "Generate" }).click();
    await page.locator(".gallery img").waitFor();
  },
  reports: async (page) => {
    const file = new URL("../../examples/reports/good.json", import.meta.url).pathname;
    await page.locator("input[type=file]").first().setInputFiles(file);
    await page.frameLocator("iframe.report").getByRole("heading", { name: "Checks and models" }).waitFor();
  },
  "reference/create_message": async () => {},
  models: async () => {},
  requests: async (page) => page.getByRole("region", { name: "Newest first" }).waitFor(),
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
/** The pictures that the guide shows, by page, width and scheme. Only these are kept. */
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
      await tab.page.getByText("Loading…").waitFor({ state: "detached" });
      await act(tab.page);
      await take(path);
    }
    await tab.close();
  }
}
await Promise.all([gateway.stop(), browser.close()]);
if (!everywhere && SHOWN.size > 0)
  throw new Error(`the guide shows pictures that no page provides: ${[...SHOWN].join(", ")}`);
