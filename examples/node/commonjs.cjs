// The same package from CommonJS.
const { Client } = require("gatewright");

const client = new Client();
client.models.list().then(({ data }) => {
  for (const model of data) console.log(model.id);
});
