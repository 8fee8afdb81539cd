// The official Node SDK of the native protocol, as its users write it, against a gateway (4, 2.5).

import assert from "node:assert/strict";

import { FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai";

const MODEL = "model-breeze";
/** Base64 that differs between the standard and the URL-safe alphabet: this SDK's users send the former. */
const PIXEL = "//79AA==";

function models(apiVersion, apiKey = process.env.GATEWRIGHT_API_KEY) {
  const httpOptions = { baseUrl: process.env.GATEWRIGHT_BASE_URL, apiVersion };
  return new GoogleGenAI({ apiKey, httpOptions }).models;
}

for (const version of [undefined, "v1", "v1beta"]) {
  const client = models(version);
  const ask = (contents, config) => client.generateContent({ model: MODEL, contents, config });

  const picture = { inlineData: { mimeType: "image/png", data: PIXEL } };
  const answer = await ask(["Say hello", picture]);
  assert.equal(answer.text, "hello");
  const counted = await client.countTokens({ model: MODEL, contents: ["Say hello", picture] });
  assert.equal(counted.totalTokens, answer.usageMetadata.promptTokenCount);

  assert.equal((await ask("Count to 30", { maxOutputTokens: 3 })).candidates[0].finishReason, "MAX_TOKENS");
  assert.ok(!(await ask("Count to 5", { stopSequences: ["4"] })).text.includes("4"));
  const list = { type: Type.ARRAY, items: { type: Type.INTEGER }, minItems: "2" };
  const schema = { type: Type.OBJECT, properties: { the_days: list }, required: ["the_days"] };
  const json = await ask("Paris", { responseMimeType: "application/json", responseSchema: schema });
  assert.equal(JSON.parse(json.text).the_days.length, 2);
  const words = { type: Type.STRING, enum: ["ruby", "emerald"] };
  const word = await ask("I like emerald.", { responseMimeType: "text/x.enum", responseSchema: words });
  assert.ok(words.enum.includes(word.text), word.text);

  const parameters = {
    type: Type.OBJECT,
    properties: { city: { type: Type.STRING } },
    required: ["city"],
  };
  const called = await ask("What is the weather in Paris?", {
    tools: [{ functionDeclarations: [{ name: "get_weather", parameters }] }],
    toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
  });
  const calls = called.functionCalls.map(({ name, args }) => ({ name, args }));
  assert.deepEqual(calls, [{ name: "get_weather", args: { city: "Paris" } }]);

  let text = "";
  for await (const chunk of await client.generateContentStream({
    model: MODEL,
    contents: "Tell me about rivers",
  })) {
    text += chunk.text ?? "";
  }
  assert.equal(text, (await ask("Tell me about rivers")).text);

  const names = [];
  for await (const model of await client.list({ config: { pageSize: 2 } })) names.push(model.name);
  assert.ok(names.includes(`models/${MODEL}`) && names.length > 2, names.join());
  for (const name of [MODEL, `models/${MODEL}`]) {
    assert.equal((await client.get({ model: name })).name, `models/${MODEL}`);
  }

  const refused = [
    [() => client.get({ model: "nope" }), 404],
    [() => client.embedContent({ model: MODEL, contents: "x" }), 404],
    [() => ask("x", { stopSequences: [..."abcdef"] }), 400],
    [() => models(version, "wrong").list(), 400],
  ];
  for (const [call, status] of refused) {
    await assert.rejects(call, (error) => {
      assert.equal(error.status, status, error.message);
      assert.match(error.message, /"status":\s*"(NOT_FOUND|INVALID_ARGUMENT)"/);
      return true;
    });
  }
}
console.log("the official Node SDK is served");
