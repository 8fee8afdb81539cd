// What the measured Node programs share: `PROGRAM WORK MODEL COUNT HOST` does one kind of work COUNT times
// and prints its cost as one line of JSON. bench/src/measured.rs is its counterpart.
//
// The kinds of work: `ask` for a whole response, `read` a stream.
import { readFileSync } from "node:fs";

const [work, model, count, host] = process.argv.slice(2);

/** The work of a measured program. */
export const task = {
  model,
  count: Number(count),
  baseUrl: `http://${host}/v1`,
  messages: [{ role: "user", content: "Tell me about rivers." }],
};

/** The text that was read as a number: its non-empty pieces, and their characters. */
export const weight = (text) => (text ? text.length + 1 : 0);

/** Peak resident memory of this process so far. */
function peakKilobytes() {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))[1]);
}

/** Does the work the given number of times and prints its cost. `once` returns what it read, as a number. */
export async function measure(once, { times = task.count, each = 1, ...more } = {}) {
  const answer = await once();
  for (let turn = 0; turn < times / 10; turn += 1) await once();
  const [cpu, wall] = [process.cpuUsage(), process.hrtime.bigint()];
  for (let turn = 0; turn < times; turn += 1) {
    const read = await once();
    if (read !== answer) throw new Error(`${answer} was read at first, then ${read}`);
  }
  const { user, system } = process.cpuUsage(cpu);
  const figures = {
    operations: times * each,
    cpu_us: user + system,
    wall_us: Number(process.hrtime.bigint() - wall) / 1000,
    peak_kb: peakKilobytes(),
    answer,
    ...more,
  };
  console.log(JSON.stringify(figures));
  process.exit(0);
}

/** Runs the work that the arguments select. Values: one iteration of each work. */
export function main(works) {
  return measure(works[work], { each: Number(model.split("-")[1] ?? 1) });
}
