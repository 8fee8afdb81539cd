// Calls every operation of the harbor and the library through their generated clients, and compares the results with the
// exchanges. `cargo xtask test other-api` puts it next to the generated code, compiles both, and runs it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { responseOf } from "./gatewright/response";
import { Client as Harbour } from "./harbour/index";
import type { Any, Berth, Cargo, Forecast, Notice, Record, Stream } from "./harbour/types";
import { type Item, Client as Library } from "./library/index";

interface Exchange {
  answer: { json?: unknown; text?: string; bytes?: string };
}

function read(variable: string): string {
  return readFileSync(process.env[variable] ?? "", "utf8");
}

const exchanges = JSON.parse(read("EXCHANGES")) as { [name: string]: Exchange };
const harbour = new Harbour();
const library = new Library();

function answer(name: string): Exchange["answer"] {
  const exchange = exchanges[name];
  assert(exchange !== undefined, name);
  return exchange.answer;
}

async function callLibrary(): Promise<void> {
  const page = await library.items.list({
    cursor: "a",
    ids: [3, 4],
    kind: ["book", "film"],
    limit: 2,
    sort: "-title",
    "X-Request-Id": "r-1",
  });
  assert.deepEqual(page, answer("lists in a query, and a header").json);
  const [book, film] = page.data;
  assert(book?.kind === "book" && film?.kind === "film");
  assert.deepEqual([book.pages, film.minutes, film.shelf], [352, 124.5, "cellar"]);
  assert.equal((await library.items.list({ cursor: page.next_cursor ?? "" })).next_cursor, null);

  const added: Item = await library.items.add({
    title: "Walden",
    kind: "book",
    pages: 352,
    shelf: "cellar",
    "X-Request-Id": "r-2",
  });
  assert.deepEqual(added, answer("a body that inherits").json);
  assert.equal((await library.items.getById("77a0")).kind, "film");
  assert.equal((await library.items.update({ path_id: "5f4d", id: "6a01", shelf: 3 })).shelf, 3);
  for (const scan of [
    Buffer.from("\x89PNG", "latin1"),
    new Blob([Uint8Array.of(0x89, 0x50, 0x4e, 0x47)]),
    Uint8Array.of(0x89, 0x50, 0x4e, 0x47).buffer,
  ]) {
    assert.equal(await library.items.scan({ path_id: "5f4d", scan }), undefined);
  }
  const states: string[] = [];
  for await (const event of await library.loans.watch("l1")) states.push(event.state);
  assert.deepEqual(states, ["lent", "returned"]);
}

async function main(): Promise<void> {
  await callLibrary();

  const manifest = await harbour.manifests.submit({
    harbour: "nyc",
    ship: 'Ada "of\r\nOslo" ü',
    level: "calm",
    tonnes: 12.5,
    urgent: true,
    marks: ["dry", "heavy"],
    berths: [7],
    seal: null,
    file: {
      name: 'größe "a"\r\n.csv',
      data: new Blob([Buffer.from("000d0a2d2dff", "hex")]),
      type: "text/csv",
    },
    pages: [new File(["1"], "1.txt"), { name: "2.txt", data: new Uint8Array() }],
  });
  assert.equal(manifest.any, "taken");
  const wrong: Parameters<typeof harbour.manifests.submit>[0] = {
    harbour: "nyc",
    ship: "Ada",
    // @ts-expect-error A text is no file.
    file: "a.csv",
  };
  await assert.rejects(harbour.manifests.submit(wrong), {
    name: "TypeError",
    message: "manifests.submit: file must be a file (bytes, a Blob, or { name, data }), not string",
  });

  const params = { pageSize: 5, state: "free", in: "east", "X-Pilot": "ada" } as const;
  const listed: Berth[] = await harbour.berths.list("nyc", params);
  assert.deepEqual(listed, answer("an array").json);
  assert.equal(responseOf(listed).status, 200);
  const engine = listed[0]?.ship?.engine;
  assert(engine?.kind === "sail");
  assert.equal(engine.masts, 3);
  assert.deepEqual(await harbour.berths.list("osl"), []);
  await assert.rejects(harbour.berths.list("none"), { name: "NotFoundError", message: /no such harbour/ });

  const grain: Cargo = { kind: "grain", tonnes: 12.5 };
  const opened = await harbour.berths.yield({
    harbour: "nyc",
    pageSize: true,
    state: 2,
    "X-Pilot": "ada",
    length_m: 120.5,
    cargo: grain,
  });
  assert.deepEqual(opened, answer("a body, and parameters that another method has too").json);
  const livestock = { kind: "livestock", heads: 3 } as unknown as Cargo;
  const pens = await harbour.berths.yield({ harbour: "osl", length_m: 30.5, cargo: livestock });
  assert.deepEqual(pens, answer("a kind that nobody knows").json);

  assert.deepEqual(await harbour.berths.retrieve("nyc", 7), answer("a number in the path").json);
  const record: Record = await harbour.berths.move({
    harbour: "nyc",
    number: 7,
    from: "6",
    class: "cargo",
    async: true,
    fn: "repair",
  });
  assert.deepEqual(record, answer("members with the names of keywords").json);

  const closing = harbour.berths.del("nyc", 7);
  const nothing: undefined = await closing;
  assert.equal(nothing, undefined);
  assert.equal((await closing.withResponse()).response.status, 204);
  assert.equal((await harbour.berths.signals.raise("nyc").withResponse()).response.status, 202);

  const chart: Uint8Array = await harbour.charts.import("depth", "large");
  assert.equal(Buffer.from(chart).toString("hex"), answer("bytes").bytes);
  assert.equal(responseOf(chart).headers.get("content-type"), "image/png");
  const log: string = await harbour.log.lambda({ from: "monday" });
  assert.equal(log, answer("text").text);

  const written: Any = await harbour.log.write({
    parameters: "p",
    body: "b",
    call: "c",
    record: { type: "note", lines: [["x"]] },
  });
  assert.deepEqual(written, answer("arguments with the names of what methods keep").json);
  const basins = await harbour.waters.streams.match();
  const names = (basins["east"] ?? []).map((stream: Stream) => stream.name);
  assert.deepEqual(names, ["Bille", "Alster"]);

  const forecast: Forecast = await harbour.forecasts.make({ days: 2, layout: "table" });
  assert.deepEqual(forecast.wind, [4, 7]);
  const letter: string = await harbour.forecasts.make({ days: 2, layout: "letter" });
  assert.equal(letter, answer("a text that a word of the request asks for").text);
  const winds: number[] = [];
  for await (const day of await harbour.forecasts.make({ days: 2, pace: "daily" })) {
    if (day.type === "forecast.day") winds.push(day.wind);
  }
  assert.deepEqual(winds, [4, 7]);
  const broken = await harbour.forecasts.make({ days: 3, pace: "daily" });
  const readToItsEnd = async (): Promise<void> => {
    for await (const day of broken) assert.equal(day.type, "forecast.day");
  };
  await assert.rejects(readToItsEnd(), { name: "StreamTruncatedError", message: /before/ });

  const notices: Notice[] = await harbour.notices.hoist({
    level: "error",
    channels: { constructor: { number: 7 }, east: { number: 16 } },
    until: 1767323045,
    größe: "large",
    "tiefe²": "deep",
    __secret: "s",
    builtins: "b",
    str: "t",
    urgent: true,
  });
  assert.deepEqual(notices, answer("idioms of OpenAPI 3.0, and names that are hard to spell").json);
  assert(notices[0]?.kind === "heard");
  assert.equal(notices[0].ship, "Ada");
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
