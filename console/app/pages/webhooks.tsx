// Notifications of video tasks, and their redelivery.
import { useState } from "preact/hooks";
import { asAdmin, type Key, keyName, type Notification } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { moment } from "../ui/format.ts";
import { Badge, Choice, Head, Problem, Table } from "../ui/parts.tsx";

const PAUSE = 5000;
const KINDS: Record<string, "good" | "bad" | "plain"> = { delivered: "good", dead: "bad", pending: "plain" };

export function Webhooks() {
  const [status, setStatus] = useState("");
  const [failed, setFailed] = useState<unknown>(null);
  const [said, setSaid] = useState("");
  const { value, error, again } = useData(
    (signal) =>
      Promise.all([
        asAdmin<{ webhooks: Notification[] }>(`webhooks${status ? `?status=${status}` : ""}`, { signal }),
        asAdmin<{ keys: Key[] }>("keys?revoked=true", { signal }),
      ]),
    [status],
    PAUSE,
  );
  const redeliver = async (id: string) => {
    try {
      await asAdmin(`webhooks/${encodeURIComponent(id)}/redeliver`, { method: "POST" });
      setSaid(`${id} will be delivered again.`);
      setFailed(null);
      again();
    } catch (refused) {
      setFailed(refused);
    }
  };
  const [listed, keys] = value ?? [null, null];
  return (
    <>
      <Head title="Webhooks">
        Notifications of finished video tasks. One that was tried twelve times is dead.
      </Head>
      <div class="filters">
        <Choice
          label="Status"
          value={status}
          options={["", "pending", "delivered", "dead"].map((name) => [name, name || "all"])}
          onChange={setStatus}
        />
      </div>
      <Problem error={error ?? failed} />
      <p role="status" class="soft">
        {said}
      </p>
      {!value && !error && <p class="soft">Loading …</p>}
      {listed && (
        <Table
          caption="The newest first"
          columns={[
            ["Notification"],
            ["Status"],
            ["Receiver"],
            ["Key"],
            ["Created"],
            ["Attempts", "number"],
            ["Next or last"],
            ["Actions"],
          ]}
          rows={listed.webhooks.length}
          empty="There is no such notification. A video request with webhook_url makes one."
        >
          {listed.webhooks.map((notification) => (
            <tr key={notification.id}>
              <th scope="row">
                <code>{notification.id}</code>
                <div class="soft">
                  <code>{notification.task}</code>
                </div>
              </th>
              <td>
                <Badge kind={KINDS[notification.status] ?? "plain"}>{notification.status}</Badge>
                {notification.problem && <div class="soft">{notification.problem}</div>}
              </td>
              <td>{notification.receiver}</td>
              <td>{keyName(keys?.keys, notification.key)}</td>
              <td>{moment(notification.created)}</td>
              <td class="number">{notification.attempts}</td>
              <td>{when(notification)}</td>
              <td>
                <button type="button" class="button small" onClick={() => redeliver(notification.id)}>
                  Redeliver <span class="hidden">{notification.id}</span>
                </button>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function when({ due, ended }: Notification): string {
  if (ended !== null) return moment(ended);
  return due === null ? "" : `next ${moment(due)}`;
}
