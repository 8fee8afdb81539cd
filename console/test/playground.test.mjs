// The playground: all protocols, tools, images, stopping, two models, and code that runs.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { KEY, PROGRAM, REFUSED, startBrowser, startGateway, startWithProvider } from "./support.mjs";

const run = promisify(execFile);
const PROTOCOLS = ["Chat", "Responses", "Messages", "Native"];
/** The folder where the code runs: Node finds the package from there. */
const FOLDER = process.env.GATEWRIGHT_CODE_FOLDER;
let gateway;
let browser;
before(async () => {
  [gateway, browser] = await Promise.all([startGateway(), startBrowser()]);
});
after(() => Promise.all([gateway.stop(), browser.close()]));

const conversation = (page) => page.getByRole("log", { name: "Transcript" });
const say = async (page, text) => {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
};
/** Opens a part of the playground and waits until it is shown, because the previous part has fields with the same names. */
const openPart = async (page, name) => {
  await page.getByRole("link", { name, exact: true }).click();
  await page.locator('[aria-current="page"]').getByText(name, { exact: true }).waitFor();
};
const chooseModel = (page, model) => page.getByLabel("Model", { exact: true }).selectOption(model);

test("every protocol streams an answer, with usage and the time to the first token", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  for (const protocol of PROTOCOLS) {
    await tab.page.getByRole("tab", { name: protocol }).click();
    await say(tab.page, `Reply with exactly: hello ${protocol}`);
    await conversation(tab.page).getByText(`hello ${protocol}`, { exact: true }).waitFor();
    const facts = tab.page.getByRole("region", { name: "Conversation" }).locator("dl");
    await facts.getByText("Finish reason").waitFor();
    const text = await facts.textContent();
    for (const name of ["First token", "Total", "Input", "Output"]) assert.ok(text.includes(name), text);
    await tab.page.getByRole("button", { name: "Clear" }).click();
  }
  await tab.close();
});

test("a fast answer is shown in few steps, and nothing else is rendered meanwhile", async () => {
  const PARTS = 2000;
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  const chunk = (delta, finish_reason = null) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const body = `${chunk({ content: "word " }).repeat(PARTS)}${chunk({ content: "end" })}${chunk({}, "stop")}data: [DONE]\n\n`;
  await tab.page.route("**/v1/chat/completions", (route) =>
    route.fulfill({ status: 200, contentType: "text/event-stream", body }),
  );
  await tab.page.evaluate(() => {
    window.changes = { transcript: 0, settings: 0 };
    const count = (name, element) =>
      new MutationObserver((records) => {
        window.changes[name] += records.length;
      }).observe(element, { subtree: true, childList: true, characterData: true, attributes: true });
    count("transcript", document.querySelector('[role="log"]'));
    count("settings", document.querySelector(".settings"));
  });
  await say(tab.page, "Say many words");
  await conversation(tab.page).getByText("word end").waitFor();
  await tab.page.getByRole("button", { name: "Send", exact: true }).waitFor();
  const { transcript, settings } = await tab.page.evaluate(() => window.changes);
  assert.ok(transcript > 0 && transcript < PARTS / 10, `${transcript} changes`);
  assert.equal(settings, 0);
  await tab.close();
});

test("a conversation continues, and Shift+Enter inserts a new line", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  const message = tab.page.getByRole("textbox", { name: "Message" });
  await message.fill("Reply with exactly: one");
  await message.press("Enter");
  await conversation(tab.page).getByText("one", { exact: true }).waitFor();
  await tab.page.getByRole("button", { name: "Send", exact: true }).waitFor();
  await message.fill("first");
  await message.press("Shift+Enter");
  assert.equal(await message.inputValue(), "first\n");
  const sent = tab.page.waitForRequest((request) => request.method() === "POST");
  await message.fill("Reply with exactly: two");
  await message.press("Enter");
  const body = (await sent).postDataJSON();
  assert.deepEqual(
    body.messages.map((each) => [each.role, each.content]),
    [
      ["user", "Reply with exactly: one"],
      ["assistant", "one"],
      ["user", "Reply with exactly: two"],
    ],
  );
  await conversation(tab.page).getByText("two", { exact: true }).waitFor();
  await tab.close();
});

test("a tool is called and its result is sent back, in every protocol", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.page.getByRole("button", { name: "Fill in an example" }).click();
  for (const protocol of PROTOCOLS) {
    await tab.page.getByRole("tab", { name: protocol }).click();
    await say(tab.page, "Call get_weather for Lisbon.");
    await tab.page.getByLabel("Result of get_weather").fill("sunny");
    const answered = tab.page.waitForResponse((response) => response.request().method() === "POST");
    await tab.page.getByRole("button", { name: "Send the result" }).click();
    assert.equal((await answered).status(), 200, protocol);
    await tab.page.getByRole("button", { name: "Send", exact: true }).waitFor();
    await tab.page.getByRole("button", { name: "Clear" }).click();
  }
  await tab.close();
});

test("an image is sent to the model, in every protocol", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  for (const protocol of PROTOCOLS) {
    await tab.page.getByRole("tab", { name: protocol }).click();
    const file = { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") };
    await tab.page.locator("input[type=file]").setInputFiles(file);
    await tab.page.getByRole("button", { name: "Remove dot.png" }).waitFor();
    const sent = tab.page.waitForRequest((request) => request.method() === "POST");
    await say(tab.page, "Reply with exactly: seen");
    assert.ok((await sent).postData().includes(png), protocol);
    await conversation(tab.page).getByText("seen", { exact: true }).waitFor();
    await tab.page.getByRole("button", { name: "Clear" }).click();
  }
  const text = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no image") };
  await tab.page.locator("input[type=file]").setInputFiles(text);
  await tab.page.getByRole("alert").getByText("notes.txt was rejected").waitFor();
  await tab.close();
});

test("an answer can be stopped, and the part that arrived stays", async () => {
  const slow = await startGateway({ arguments: ["--fault", "hang=6"] });
  const tab = await browser.open(slow);
  await tab.signIn(KEY);
  await say(tab.page, "Tell me about rivers, at length.");
  const answer = tab.page.locator(".turn.assistant .markdown");
  await answer.waitFor();
  await tab.page.getByRole("button", { name: "Stop" }).click();
  await conversation(tab.page).getByText("You stopped the response.").waitFor();
  assert.notEqual(await answer.textContent(), "");
  await tab.page.getByRole("button", { name: "Send", exact: true }).waitFor();
  await tab.close();
  await slow.stop();
});

test("2,000 words a second are shown as they arrive, with their time, and can be stopped", async (t) => {
  // In each piece, as many words as arrive at a time.
  const words = Array(150).fill("word ".repeat(40));
  const { gateway } = await startWithProvider(t, [words]);
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  const answer = tab.page.locator(".turn.assistant .markdown").last();
  const count = async () => (await answer.textContent()).split(" ").filter(Boolean).length;
  const started = Date.now();
  await say(tab.page, "Say many words");
  await answer.waitFor();
  const early = await count();
  assert.ok(early < 6000, `${early} words at first`);
  await tab.page.getByRole("button", { name: "Send", exact: true }).waitFor();
  const waited = (Date.now() - started) / 1000;
  assert.equal(await count(), 6000);
  const facts = tab.page.getByRole("region", { name: "Conversation" }).locator("dl");
  const total = Number(/Total\s*([\d.]+) s/.exec(await facts.textContent())?.[1]);
  // The provider takes three seconds at least; what the page does afterwards is no part of the time.
  assert.ok(total >= 3 && total <= waited, `${total} s of ${waited} s`);

  await say(tab.page, "Again");
  await tab.page.getByRole("button", { name: "Stop" }).click();
  await conversation(tab.page).getByText("You stopped the response.").waitFor();
  assert.ok((await count()) < 6000);
  await tab.close();
});

test("two models answer side by side", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.page.getByLabel("Two models side by side").check();
  await tab.page.getByLabel("Second model").selectOption("model-breeze");
  const models = [];
  tab.page.on("request", (request) => {
    if (request.method() === "POST") models.push(request.postDataJSON().model);
  });
  await say(tab.page, "Reply with exactly: both");
  for (const name of ["Conversation", "Second conversation"]) {
    await tab.page.getByRole("region", { name, exact: true }).getByText("both", { exact: true }).waitFor();
  }
  assert.deepEqual(models.sort(), ["model-breeze", "model-sol"]);
  await tab.close();
});

test("a rejected request is shown with its status, code and request id", async () => {
  const tab = await browser.open(gateway, { expected: [REFUSED] });
  await tab.signIn(KEY);
  await tab.page.getByLabel("Temperature").fill("99");
  await say(tab.page, "Hello.");
  const alert = conversation(tab.page).getByRole("alert");
  await alert.getByText("temperature").waitFor();
  assert.match(await alert.textContent(), /status 400.*request req/);
  await tab.page.getByLabel("Tools").fill("{");
  await tab.page.getByText("The tools aren't valid JSON").first().waitFor();
  await tab.close();
});

test("a stream that breaks off is an error, never a short answer", async () => {
  const broken = await startGateway({ arguments: ["--fault", "truncate=3"] });
  const tab = await browser.open(broken, { expected: [REFUSED, /net::ERR_/] });
  await tab.signIn(KEY);
  await say(tab.page, "Tell me about rivers.");
  await conversation(tab.page).getByRole("alert").waitFor();
  await tab.close();
  await broken.stop();
});

test("images and videos are generated", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await openPart(tab.page, "Images");
  await chooseModel(tab.page, "image_model_2");
  await tab.page.getByLabel("Size").selectOption("256x256");
  await tab.page.getByLabel("Number of images").fill("2");
  await tab.page.getByRole("button", { name: "Generate" }).click();
  const images = tab.page.locator(".gallery img");
  await images.nth(1).waitFor();
  const widths = await images.evaluateAll((all) => all.map((image) => image.naturalWidth));
  assert.deepEqual(widths, [256, 256]);
  const saving = tab.page.waitForEvent("download");
  await tab.page.getByRole("link", { name: "Download image-2" }).click();
  const download = await saving;
  assert.equal(download.suggestedFilename(), "image-2.png");
  assert.ok((await readFile(await download.path())).subarray(0, 8).includes("PNG"));

  await openPart(tab.page, "Videos");
  await tab.page.getByLabel("Duration in seconds").fill("3");
  await tab.page.getByLabel("Resolution").selectOption("720p");
  await tab.page.getByRole("button", { name: "Generate" }).click();
  const video = tab.page.locator("video");
  await video.waitFor({ timeout: 60_000 });
  assert.ok((await video.getAttribute("src")).startsWith(gateway.url));
  assert.equal((await fetch(await video.getAttribute("src"))).status, 200);
  await tab.close();
});

test("a provider's URL that isn't a web address is no link", async () => {
  const url = "javascript:alert(1)";
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  const answer = (path, body) =>
    tab.page.route(path, (route) => route.fulfill({ status: 200, json: { created: 1, ...body } }));
  await answer("**/v1/images/generations", { data: [{ url }] });
  const output = { url, resolution: "1280x720", duration: 3, format: "mp4" };
  await answer("**/v1/videos/generations", { id: "video_1", status: "completed", output });
  for (const [part, words] of [
    ["Images", "The image's URL isn't a web address."],
    ["Videos", "The file's URL isn't a web address."],
  ]) {
    await openPart(tab.page, part);
    await tab.page.getByLabel("Prompt").fill("a harbour");
    await tab.page.getByRole("button", { name: "Generate" }).click();
    await tab.page.getByText(words).waitFor();
    assert.equal(await tab.page.locator('[href^="javascript:"], [src^="javascript:"]').count(), 0);
  }
  await tab.close();
});

/** Fills in a request of each kind: a text in each protocol, an image, a video. */
const REQUESTS = {
  ...Object.fromEntries(
    PROTOCOLS.map((protocol) => [
      protocol,
      async (page, text) => {
        await page.getByRole("tab", { name: protocol }).click();
        await page.getByRole("textbox", { name: "Message" }).fill(text);
      },
    ]),
  ),
  Images: async (page) => {
    await openPart(page, "Images");
    await chooseModel(page, "image_model_2");
    await page.getByLabel("Size").selectOption("256x256");
  },
  Videos: async (page) => {
    await openPart(page, "Videos");
    await chooseModel(page, "video_model_4");
    await page.getByLabel("Duration in seconds").fill("3");
    await page.getByLabel("Resolution").selectOption("720p");
  },
};

/** Runs the code in each language, against the gateway and with its key. */
const commands = () => ({
  Python: async (code) => {
    await writeFile(join(FOLDER, "code.py"), code);
    return run(process.env.GATEWRIGHT_PYTHON, [join(FOLDER, "code.py")], options());
  },
  Node: async (code) => {
    await writeFile(join(FOLDER, "code.mjs"), code);
    return run(process.execPath, [join(FOLDER, "code.mjs")], options());
  },
  curl: async (code) => run("sh", ["-c", code], options()),
});

const options = () => ({
  cwd: FOLDER,
  env: { ...process.env, GATEWRIGHT_BASE_URL: gateway.url, GATEWRIGHT_API_KEY: KEY },
  maxBuffer: 16 * 1024 * 1024,
});

/** The code of the request in a language. */
const codeIn = async (page, language) => {
  await page.getByRole("tab", { name: language }).click();
  return page.getByRole("region", { name: `The request in ${language}` }).textContent();
};

test("the code shown runs, prints the requested text, and saves images and videos", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  // The saved file, and a marker within its first eight bytes.
  const made = {
    Images: { file: "image-1.png", magic: "PNG" },
    Videos: { file: "video.mp4", magic: "ftyp" },
  };
  for (const [kind, fill] of Object.entries(REQUESTS)) {
    await fill(tab.page, `Reply with exactly: it's "${kind}"`);
    for (const [language, command] of Object.entries(commands())) {
      const code = await codeIn(tab.page, language);
      assert.ok(!code.includes(KEY));
      if (kind in made) {
        const { file, magic } = made[kind];
        await rm(join(FOLDER, file), { force: true });
        const { stdout } = await command(code);
        const saved = await readFile(join(FOLDER, file));
        assert.equal(stdout, `${file}: ${saved.length} bytes\n`, `${language}, ${kind}: ${code}`);
        assert.ok(saved.subarray(0, 8).includes(magic), `${language}, ${kind}`);
        continue;
      }
      const { stdout } = await command(code);
      // Stream events may split the text anywhere.
      const pieces = [...stdout.matchAll(/"(?:text|content|delta)":"((?:[^"\\]|\\.)*)"/g)];
      const printed = language === "curl" ? pieces.map(([, piece]) => piece).join("") : stdout;
      assert.match(printed, new RegExp(kind), `${language}, ${kind}: ${code}\n${stdout}`);
    }
  }
  await tab.close();
});

test("the code of a request with tools prints the calls in the answer, in every protocol", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  await tab.page.getByRole("button", { name: "Fill in an example" }).click();
  for (const protocol of PROTOCOLS) {
    const example = `from_console_${protocol.toLowerCase()}_tools`;
    const languages = { ...commands(), Rust: () => run(join(dirname(PROGRAM), example), [], options()) };
    await REQUESTS[protocol](tab.page, "Call get_weather for Lisbon.");
    for (const [language, command] of Object.entries(languages)) {
      const code = await codeIn(tab.page, language);
      if (language === "Rust") await isExample(code, example);
      const { stdout } = await command(code);
      // curl prints the events, which contain the call; each language formats the arguments its own way.
      const call = language === "curl" ? /"name": ?"get_weather"/ : /^get_weather \{ ?['"]?city['"]?: ?['"]/m;
      assert.match(stdout, call, `${language}, ${protocol}: ${code}\n${stdout}`);
    }
  }
  await tab.close();
});

test("the Rust code equals the examples, which are built and run", async () => {
  const tab = await browser.open(gateway);
  await tab.signIn(KEY);
  for (const [kind, fill] of Object.entries(REQUESTS)) {
    await fill(tab.page, "Tell me about rivers.");
    const name = kind === "Chat" ? "from_console" : `from_console_${kind.toLowerCase()}`;
    await isExample(await codeIn(tab.page, "Rust"), name);
  }
  await tab.close();
});

/** Checks that Rust code equals an example, and that it names exactly the crates that it uses. */
async function isExample(code, name) {
  const example = await readFile(new URL(`../../examples/rust/${name}.rs`, import.meta.url), "utf8");
  assert.equal(code, example.slice(example.indexOf("\n// cargo add ") + 1), name);
  const added = code.match(/^\/\/ cargo add (.*) -F tokio\/macros,tokio\/rt-multi-thread$/m)[1].split(" ");
  const used = [...code.matchAll(/(?:^use |#\[)(\w+)::/gm)].map(([, crate]) => crate.replace("_", "-"));
  assert.deepEqual(added.map((crate) => crate.replace("_", "-")).sort(), [...new Set(used)].sort(), name);
}
