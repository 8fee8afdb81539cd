/** Writes pictures of pages: `node pictures.mjs FOLDER OUT`. */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { open, withBrowser } from "./browser.mjs";

/** Name of the page, and its pictures: name, width, color scheme, and the height to which it is cropped. */
const PICTURES = [
  ["faults", "check-faults", 1000, "light", 940],
  ["passes", "check-gateway", 1000, "light", 640],
  ["other-server", "check-other-server", 1000, "light", 640],
  ["trend", "report-trend", 1000, "light", 900],
  ["diff", "report-diff", 1000, "light", 600],
];

const [folder, out] = process.argv.slice(2);
await withBrowser(async (context) => {
  for (const [name, picture, width, scheme, height] of PICTURES) {
    const page = await open(context, pathToFileURL(join(folder, `${name}.html`)).href, width, scheme);
    await page.setViewportSize({ width, height });
    await page.screenshot({ path: join(out, `${picture}.png`) });
    await page.close();
  }
});
