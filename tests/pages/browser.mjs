/** Debian's browser, driven over its debugging pipe: no request leaves the machine, and nothing is stored. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PROGRAM = process.env.GATEWRIGHT_CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Runs a function with a browser that has an empty profile. */
export async function withBrowser(use) {
  const profile = await mkdtemp(join(tmpdir(), "gatewright-pages-"));
  const context = await chromium.launchPersistentContext(profile, { executablePath: PROGRAM, args: FLAGS });
  try {
    return await use(context);
  } finally {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  }
}

/** Opens a page at a width in a color scheme. Throws if the page requests anything but itself. */
export async function open(context, url, width, scheme) {
  const page = await context.newPage();
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  const requested = [];
  page.on("request", (request) => requested.push(request.url()));
  await page.goto(url);
  const others = requested.filter((address) => address !== url);
  if (others.length > 0) throw new Error(`${url} asks for ${others.join(", ")}`);
  return page;
}
