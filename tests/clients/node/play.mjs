/**
 * Plays every scenario with every client of some modules against every target, one line of JSON for each.
 *
 * Usage: node play.mjs TARGETS SHARE PLAYER MODULE…; see ../python/play.py and its `Target`.
 */

import { readFileSync } from "node:fs";

import { NEEDS, plays, SCENARIOS } from "./scenarios.mjs";

async function outcome(client, player, target, scenario, chosen) {
  const needed = NEEDS[scenario] ?? "models";
  const models = target[needed];
  const reason = target.lacks?.[client.name]?.[scenario] ?? target.lacks?.["*"]?.[scenario];
  if (reason) return { skipped: reason };
  if (!models?.[client.protocol]) return { skipped: `this upstream has no ${needed} for ${client.protocol}` };
  if (!chosen) return { omitted: true };
  const modelOf = (models) => target[models][client.protocol].replace("{}", player);
  const connect = ({ models = needed, model = modelOf(models), key = target.key } = {}) =>
    client.connect({ ...target, key }, model);
  try {
    await SCENARIOS[scenario]({ connect, target, client, protocol: client.protocol });
    return {};
  } catch (error) {
    const at = /(\w+\.mjs:\d+)/.exec(error.stack)?.[1];
    return { failed: `${at}: ${error.name}: ${error.message}`.slice(0, 2000) };
  }
}

const [targets, share, player, ...modules] = process.argv.slice(2);
const clients = (await Promise.all(modules.map((name) => import(`./${name}.mjs`)))).flatMap(
  ({ CLIENTS }) => CLIENTS,
);
for (const [place, target] of JSON.parse(readFileSync(targets, "utf8")).entries()) {
  for (const [number, client] of clients.entries()) {
    const scenarios = Object.keys(SCENARIOS).filter((each) => plays(client, each));
    for (const [index, scenario] of scenarios.entries()) {
      const row = { upstream: target.name, client: client.name, scenario };
      const started = performance.now();
      const chosen = (place + number + index) % Number(share) === 0;
      Object.assign(row, await outcome(client, `${player}-${number}`, target, scenario, chosen));
      row.seconds = Math.round((performance.now() - started) / 10) / 100;
      console.log(JSON.stringify(row));
    }
  }
}
