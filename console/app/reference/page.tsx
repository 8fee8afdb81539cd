// The API reference, of the specification that the gateway is made of.
import { href, route } from "../router.ts";
import { useData } from "../ui/data.ts";
import { Badge, Head, Problem } from "../ui/parts.tsx";
import { Members } from "./schema.tsx";
import { type Listed, load, operations, resolved, type Specification } from "./specification.ts";
import { Try } from "./try.tsx";

export function Reference() {
  const { value, error } = useData(load, []);
  if (!value) {
    return (
      <>
        <Head title="API reference" />
        <Problem error={error} />
        {!error && <p class="soft">Loading …</p>}
      </>
    );
  }
  const all = operations(value);
  const chosen = route.value.split("/")[1];
  const listed = all.find(({ operation }) => operation.operationId === chosen) ?? all[0];
  return (
    <>
      <Head title="API reference">
        {value.info.title}, version {value.info.version} of the specification.
      </Head>
      <div class="reference">
        <nav aria-label="Operations">
          {value.tags.map((tag) => (
            <section key={tag.name} aria-labelledby={`tag-${tag.name}`}>
              <h2 id={`tag-${tag.name}`}>{tag.name}</h2>
              <ul>
                {all
                  .filter(({ operation }) => operation.tags.includes(tag.name))
                  .map((each) => (
                    <li key={each.operation.operationId}>
                      <a
                        href={href(`reference/${each.operation.operationId}`)}
                        aria-current={each === listed ? "page" : undefined}
                      >
                        {each.operation.summary}
                      </a>
                    </li>
                  ))}
              </ul>
            </section>
          ))}
        </nav>
        {listed && <Shown key={listed.operation.operationId} specification={value} listed={listed} />}
      </div>
    </>
  );
}

function Shown({ specification, listed }: { specification: Specification; listed: Listed }) {
  const { operation, method, path } = listed;
  const parameters = (operation.parameters ?? []).map((parameter) => resolved(specification, parameter));
  const body = operation.requestBody?.content["application/json"]?.schema;
  const succeeded = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
  const errors = Object.keys(operation.responses).filter((status) => /^[45]/.test(status));
  return (
    <article class="operation">
      <h2>{operation.summary}</h2>
      <p class="path">
        <Badge kind="plain">{method}</Badge> <code>{path}</code>
      </p>
      {operation.description && <p>{operation.description}</p>}
      <p class="soft">
        In the clients:{" "}
        <code>
          client.{operation["x-resource"]}.{operation["x-method"]}
        </code>
      </p>
      {parameters.length > 0 && (
        <section>
          <h3>Parameters</h3>
          <ul class="members">
            {parameters.map((parameter) => (
              <li key={parameter.name}>
                <code class="name">{parameter.name}</code> <span class="soft">in {parameter.in}</span>
                {parameter.required && <span class="required"> required</span>}
                {parameter.description && <p>{parameter.description}</p>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {body && (
        <section>
          <h3>Body</h3>
          <Members specification={specification} schema={body} />
        </section>
      )}
      {succeeded && (
        <section>
          <h3>Answer</h3>
          <p>{resolved(specification, succeeded[1]).description}</p>
          {Object.entries(resolved(specification, succeeded[1]).content ?? {}).map(([type, media]) => {
            const schema = media.itemSchema ?? media.schema;
            return (
              <div key={type}>
                <p class="soft">
                  <code>{type}</code>
                  {media.itemSchema && ", each event"}
                </p>
                {schema && <Members specification={specification} schema={schema} />}
              </div>
            );
          })}
          {errors.length > 0 && <p class="soft">Errors: {[...errors].sort().join(", ")}.</p>}
        </section>
      )}
      <section>
        <h3>Try it</h3>
        <Try listed={listed} parameters={parameters} />
      </section>
    </article>
  );
}
