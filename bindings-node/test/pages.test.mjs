// Pages of lists: a loop over one goes on with the next ones.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, DecodeError, responseOf } from "gatewright";

import { startGateway } from "./support/gateway.mjs";
import { answerWith, serve } from "./support/server.mjs";

const ITEMS = Array.from({ length: 5 }, (_, n) => ({
  id: `item_${n}`,
  type: "message",
  role: "user",
  content: [],
}));

/** A client of a server that has two items on a page, and the targets of the requests. */
async function paged(t) {
  const targets = [];
  const server = await serve(t, ({ target }, socket) => {
    targets.push(target);
    const start = target.includes("after=") ? Number(target.split("after=item_")[1][0]) + 1 : 0;
    answerWith(socket, 200, pageOf(ITEMS.slice(start, start + 2), start + 2 < ITEMS.length));
  });
  return { targets, items: new Client({ baseUrl: server.url, apiKey: "sk-test" }).responses.inputItems };
}

const pageOf = (data, has_more) => ({
  object: "list",
  data,
  first_id: data[0].id,
  last_id: data.at(-1).id,
  has_more,
});

async function collect(source) {
  const values = [];
  for await (const value of source) values.push(value);
  return values;
}

test("for await goes on with the next pages, with the same parameters", async (t) => {
  const { targets, items } = await paged(t);
  assert.deepEqual(await collect(items.list("resp_1", { limit: 2, order: "asc" })), ITEMS);
  assert.equal(targets.length, 3);
  assert.ok(targets.every((target) => target.includes("limit=2") && target.includes("order=asc")));
  assert.deepEqual(await collect(await items.list("resp_1")), ITEMS);
});

test("a page is the object that arrived, and for gives its own items", async (t) => {
  const { targets, items } = await paged(t);
  const page = await items.list("resp_1");
  assert.deepEqual(page, pageOf(ITEMS.slice(0, 2), true));
  assert.deepEqual([...page], ITEMS.slice(0, 2));
  assert.equal(responseOf(page).status, 200);
  assert.equal(targets.length, 1);
});

test("only the pages that are needed are fetched", async (t) => {
  const { targets, items } = await paged(t);
  for await (const { id } of items.list("resp_1")) if (id === "item_2") break;
  assert.equal(targets.length, 2);
  assert.equal((await collect(items.list("resp_1", { before: "item_4" }))).length, 2);
  assert.equal(targets.length, 3);
});

test("a list that leads back to an earlier page is an error, not an endless loop", async (t) => {
  for (const length of [1, 2, 3]) {
    let page = -1;
    const server = await serve(t, (_, socket) => {
      page += 1;
      answerWith(socket, 200, pageOf(ITEMS.slice(page % length, (page % length) + 1), true));
    });
    const client = new Client({ baseUrl: server.url, apiKey: "sk-test" });
    const items = client.responses.inputItems.list("resp_1");
    const error = await collect(items).then(assert.fail, (error) => error);
    assert.ok(error instanceof DecodeError);
    assert.match(
      error.message,
      /^responses\.inputItems\.list: the list leads back to an earlier page: "item_\d"/,
    );
    assert.ok(page <= 4 * length, `${page} of ${length}`);
  }
});

test("the native models go on with the next pages", async (t) => {
  const { models } = new Client(await startGateway(t)).native;
  const all = (await models.list({ pageSize: 100 })).models;
  const page = await models.list({ pageSize: 2 });
  assert.equal([...page].length, 2);
  assert.deepEqual(await collect(page), all);
  assert.deepEqual(await collect(models.list({ pageSize: 2 })), all);

  const server = await serve(t, (_, socket) =>
    answerWith(socket, 200, { models: [], nextPageToken: "again" }),
  );
  const client = new Client({ baseUrl: server.url, apiKey: "sk-test" });
  await assert.rejects(
    collect(client.native.models.list()),
    /native\.models\.list: the list leads back to an earlier page: "again"/,
  );
});
