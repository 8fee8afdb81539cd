// Notifications about video tasks, with redelivery.
import { useState } from "preact/hooks";
import { asAdmin, type Key, keyName, type Notification } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { whole } from "../ui/format.ts";
import { Badge, Choice, Head, Id, Problem, Table, When } from "../ui/parts.tsx";

const PAUSE = 5000;
const KINDS: Record<string, "good" | "bad" | "plain"> = { delivered: "good", dead: "bad", pending: "plain" };

export function Webhooks() {
  const [status, setStatus] = useState("");
  const [failed, setFailed] = useState<unknown>(null);
  const [notice, setNotice] = useState("");
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
      setNotice(`${id} will be delivered again.`);
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
        Notifications about finished video tasks. After twelve failed attempts, a notification is dead.
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
        {notice}
      </p>
      {!value && !error && <p class="soft">Loading…</p>}
      {listed && (
        <Table
          caption="Newest first"
          columns={[
            ["Notification"],
            ["Status", "prose"],
            ["Receiver"],
            ["Key"],
            ["Created"],
            ["Attempts", "number"],
            ["Next / last attempt"],
            ["Actions"],
          ]}
          rows={listed.webhooks.map((notification) => ({
            key: notification.id,
            cells: [
              <>
                <Id of={notification.id} />
                <div class="soft">
                  <Id of={notification.task} />
                </div>
              </>,
              <>
                <Badge kind={KINDS[notification.status] ?? "plain"}>{notification.status}</Badge>
                {notification.problem && <div class="soft">{notification.problem}</div>}
              </>,
              <Id key="receiver" plain of={notification.receiver} />,
              <Id key="key" plain of={keyName(keys?.keys, notification.key)} />,
              <When key="created" at={notification.created} />,
              whole(notification.attempts),
              <Attempt key="attempt" of={notification} />,
              <button
                key="redeliver"
                type="button"
                class="button small"
                onClick={() => redeliver(notification.id)}
              >
                Redeliver <span class="hidden">{notification.id}</span>
              </button>,
            ],
          }))}
          empty="No notifications found. Video requests with webhook_url create them."
        />
      )}
    </>
  );
}

function Attempt({ of: { due, ended } }: { of: Notification }) {
  if (ended !== null) return <When at={ended} />;
  if (due === null) return null;
  return (
    <>
      next <When at={due} />
    </>
  );
}
