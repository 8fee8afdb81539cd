// The Node side of `cargo xtask soak REQUESTS EVENTS`: prints `PHASE DONE` forty times per phase.
//
// Usage: node --expose-gc soak.mjs REQUESTS EVENTS
import assert from "node:assert/strict";
import { Client } from "../../bindings-node/dist/index.mjs";

/** Calls in progress at once. */
const AT_ONCE = 8;
/** Events of each stream that xtask's server sends. */
const EVENTS_PER_STREAM = 10_000;
/** Samples of a phase. */
const SAMPLES = 40;

const [requests, events] = process.argv.slice(2).map(Number);
const request = { model: "m", messages: [{ role: "user", content: "Tell me about rivers." }] };
const client = new Client();

/** Runs `work` the given number of times, and reports after each share of the phase. */
async function phase(name, times, unit, work) {
  for (let sample = 1, done = 0; sample <= SAMPLES; sample += 1) {
    for (const until = Math.floor((times * sample) / SAMPLES); done < until; done += 1) await work();
    // Twice: objects released by a finalizer are collected in the next turn.
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc();
    console.log(name, done * unit);
  }
}

await phase("requests", Math.floor(requests / AT_ONCE), AT_ONCE, async () => {
  const calls = Array.from({ length: AT_ONCE }, () => client.chat.completions.create(request));
  for (const completion of await Promise.all(calls)) {
    assert.equal(completion.choices[0].message.content, "Rivers shape the land they cross.");
  }
});

await phase("events", Math.floor(events / EVENTS_PER_STREAM), EVENTS_PER_STREAM, async () => {
  let seen = 0;
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    seen += chunk.choices.length;
  }
  assert.equal(seen, EVENTS_PER_STREAM);
});
