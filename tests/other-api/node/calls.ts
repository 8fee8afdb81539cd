// Calls every operation of the harbor through its generated client, and compares the results with the
// exchanges. `cargo xtask test other-api` puts it next to the generated code, compiles both, and runs it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Connection } from "./gatewright/connection";
import { engine } from "./gatewright/engine";
import { CallSite } from "./gatewright/failure";
import { responseOf } from "./gatewright/response";
import { ClientResources } from "./generated/resources";
import type { Any, Berth, Cargo, Record, Stream } from "./generated/types";

interface Exchange {
  answer: { json?: unknown; text?: string; bytes?: string };
}

function read(variable: string): string {
  return readFileSync(process.env[variable] ?? "", "utf8");
}

const exchanges = JSON.parse(read("EXCHANGES")) as { [name: string]: Exchange };
const refused = (engine as unknown as { registerOperations(json: string): string | null }).registerOperations(
  read("OPERATIONS"),
);
assert.equal(refused, null);

const harbour = new ClientResources(Connection.open({}, "harbour-test", new CallSite(ClientResources)));

function answer(name: string): Exchange["answer"] {
  const exchange = exchanges[name];
  assert(exchange !== undefined, name);
  return exchange.answer;
}

async function main(): Promise<void> {
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
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
