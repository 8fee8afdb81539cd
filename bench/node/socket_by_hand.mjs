// The floor for every Node client: a bare socket and JSON.parse. It implements only the HTTP that the stub's
// responses need.
import { connect } from "node:net";
import { main, task, weight } from "./measured.mjs";

const { model, messages } = task;
const [host, port] = new URL(task.baseUrl).host.split(":");
const END = "0\r\n\r\n";

const socket = connect({ host, port: Number(port), noDelay: true });
socket.setEncoding("utf8");
let take;
socket.on("data", (packet) => take(packet));

/** Sends a request; `each` gets the packets of the response and returns what was read once it is complete. */
function exchange(body, each) {
  const text = JSON.stringify(body);
  return new Promise((resolve) => {
    take = (packet) => {
      const answer = each(packet);
      if (answer !== undefined) resolve(answer);
    };
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer none\r\n` +
        `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
  });
}

await main({
  ask() {
    let received = "";
    return exchange({ model, messages }, (packet) => {
      received += packet;
      const start = received.indexOf("\r\n\r\n") + 4;
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1]);
      if (start < 4 || Buffer.byteLength(received) - start < length) return undefined;
      const completion = JSON.parse(received.slice(start));
      return weight(completion.choices[0].message.content) + completion.usage.total_tokens;
    });
  },
  read() {
    let [total, rest] = [0, ""];
    return exchange({ model, messages, stream: true }, (packet) => {
      const lines = (rest + packet).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        // The HTTP lines between them belong to no event.
        if (line.startsWith("data: {")) total += weight(JSON.parse(line.slice(6)).choices[0]?.delta.content);
      }
      return packet.endsWith(END) ? total : undefined;
    });
  },
});
