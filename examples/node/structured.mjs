// An answer as a value: of a zod schema here, or of a JSON Schema.
import { Client } from "gatewright";
import { z } from "zod";

const City = z.object({ name: z.string(), population: z.number().int() });
const client = new Client(); // GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY

const completion = await client.chat.completions.parse({
  model: "model-sol",
  messages: [{ role: "user", content: "A city of Norway, and how many live there." }],
  response_format: City,
});
const { parsed, refusal } = completion.choices[0].message;
if (parsed === null) console.log("refused:", refusal);
else console.log(`${parsed.name} has more than ${parsed.population - 1} inhabitants.`);

const response = await client.responses.parse({
  model: "model-sol",
  input: "A city of Norway.",
  text: { format: City },
});
console.log(response.output_parsed?.name);
