// Video tasks of all keys, without what was asked for.
import { useState } from "preact/hooks";
import { asAdmin, type Key, keyName, type Task } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { moment } from "../ui/format.ts";
import { Badge, Choice, Head, Problem, Table } from "../ui/parts.tsx";

const PAUSE = 5000;
const KINDS: Record<string, "good" | "bad" | "plain"> = { completed: "good", failed: "bad" };

export function Tasks() {
  const [status, setStatus] = useState("");
  const { value, error } = useData(
    (signal) =>
      Promise.all([
        asAdmin<{ tasks: Task[] }>(`tasks${status ? `?status=${status}` : ""}`, { signal }),
        asAdmin<{ keys: Key[] }>("keys?revoked=true", { signal }),
      ]),
    [status],
    PAUSE,
  );
  const [listed, keys] = value ?? [null, null];
  return (
    <>
      <Head title="Video tasks">
        Of all keys, without prompts. One that has ended stays known for a week.
      </Head>
      <div class="filters">
        <Choice
          label="Status"
          value={status}
          options={["", "pending", "processing", "completed", "failed"].map((name) => [name, name || "all"])}
          onChange={setStatus}
        />
      </div>
      <Problem error={error} />
      {!value && !error && <p class="soft">Loading …</p>}
      {listed && (
        <Table
          caption="The newest first"
          columns={[["Task"], ["Status"], ["Model"], ["Key"], ["Created"], ["Ended"]]}
          rows={listed.tasks.length}
          empty="There is no such task. A video request makes one."
        >
          {listed.tasks.map((task) => (
            <tr key={task.id}>
              <th scope="row">
                <code>{task.id}</code>
              </th>
              <td>
                <Badge kind={KINDS[task.status] ?? "plain"}>{task.status}</Badge>
                {task.problem && <div class="soft">{task.problem}</div>}
              </td>
              <td>{task.model}</td>
              <td>{keyName(keys?.keys, task.key)}</td>
              <td>{moment(task.created)}</td>
              <td>{task.ended === null ? "" : moment(task.ended)}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
