// Video tasks of all keys, without their prompts.
import { useState } from "preact/hooks";
import { asAdmin, type Key, keyName, type Task } from "../admin.ts";
import { useData } from "../ui/data.ts";
import { Badge, Choice, Head, Id, Problem, Table, When } from "../ui/parts.tsx";

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
      <Head title="Video tasks">Tasks of all keys, without prompts. Finished tasks are kept for a week.</Head>
      <div class="filters">
        <Choice
          label="Status"
          value={status}
          options={["", "pending", "processing", "completed", "failed"].map((name) => [name, name || "all"])}
          onChange={setStatus}
        />
      </div>
      <Problem error={error} />
      {!value && !error && <p class="soft">Loading…</p>}
      {listed && (
        <Table
          caption="Newest first"
          columns={[["Task"], ["Status", "prose"], ["Model"], ["Key"], ["Created"], ["Ended"]]}
          rows={listed.tasks.map((task) => ({
            key: task.id,
            cells: [
              <Id key="id" of={task.id} />,
              <>
                <Badge kind={KINDS[task.status] ?? "plain"}>{task.status}</Badge>
                {task.problem && <div class="soft">{task.problem}</div>}
              </>,
              <Id key="model" plain of={task.model} />,
              <Id key="key" plain of={keyName(keys?.keys, task.key)} />,
              <When key="created" at={task.created} />,
              task.ended !== null && <When at={task.ended} />,
            ],
          }))}
          empty="No tasks found. Video requests create them."
        />
      )}
    </>
  );
}
