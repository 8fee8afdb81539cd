// The cost of an answer is the same in the console as in the gateway.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import typescript from "typescript";

const read = (path) => readFile(new URL(path, import.meta.url), "utf8");

test("the cost of an answer is that of the vectors", async () => {
  const options = {
    compilerOptions: { module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 },
  };
  const { outputText } = typescript.transpileModule(await read("../app/playground/cost.ts"), options);
  const { cost } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
  const cases = JSON.parse(await read("../../tests/vectors/prices/costs.json"));
  for (const { name, price, usage, cost: expected } of cases) {
    const used = {
      input: usage.prompt_tokens,
      output: usage.completion_tokens,
      cached: usage.prompt_tokens_details?.cached_tokens ?? null,
      written: usage.prompt_tokens_details?.cache_write_tokens ?? null,
      reasoning: usage.completion_tokens_details?.reasoning_tokens ?? null,
    };
    assert.ok(Math.abs(cost(price, used) - expected) < 1e-9, `${name}: ${cost(price, used)}`);
  }
  assert.ok(cases.length > 5);
});
