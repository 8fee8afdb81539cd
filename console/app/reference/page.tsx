// The API reference, from the specification that the gateway is built from. A URL links to an operation, or to one of its
// sections: `reference/create_video/response`.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { href, route } from "../router.ts";
import { useData } from "../ui/data.ts";
import { Badge, Head, Problem } from "../ui/parts.tsx";
import { Facts, kind, Members } from "./schema.tsx";
import { type Listed, load, operations, resolved, type Specification } from "./specification.ts";
import { Try } from "./try.tsx";

export function Reference() {
  const { value, error } = useData(load, []);
  const list = useRef<HTMLElement>(null);
  const address = route.value;
  useEffect(() => {
    if (!value) return;
    // Scroll only the list, not the window.
    const link = list.current?.querySelector<HTMLElement>("[aria-current]");
    if (link && list.current) bringIntoView(list.current, link);
  }, [value, address]);
  if (!value) {
    return (
      <>
        <Head title="API reference" />
        <Problem error={error} />
        {!error && <p class="soft">Loading…</p>}
      </>
    );
  }
  const all = operations(value);
  const [, chosen, section] = route.value.split("/");
  const listed = all.find(({ operation }) => operation.operationId === chosen) ?? all[0];
  return (
    <>
      <Head title="API reference">
        {value.info.title}, specification version {value.info.version}.
      </Head>
      <div class="reference">
        <nav aria-label="Operations" ref={list}>
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
        {listed && (
          <Shown
            key={listed.operation.operationId}
            specification={value}
            listed={listed}
            section={section}
            isLinked={chosen !== undefined}
          />
        )}
      </div>
    </>
  );
}

/** Scrolls a frame just far enough to show one of its elements. */
function bringIntoView(frame: HTMLElement, element: HTMLElement): void {
  const [outer, inner] = [frame.getBoundingClientRect(), element.getBoundingClientRect()];
  if (inner.top < outer.top) frame.scrollTop -= outer.top - inner.top;
  else if (inner.bottom > outer.bottom) frame.scrollTop += inner.bottom - outer.bottom;
}

function Shown(props: {
  specification: Specification;
  listed: Listed;
  section: string | undefined;
  /** Whether the URL names the operation: without one, the page shows the first. */
  isLinked: boolean;
}) {
  const { specification, listed, section, isLinked } = props;
  const { operation, method, path } = listed;
  const article = useRef<HTMLElement>(null);
  useEffect(() => {
    const named = section === undefined ? null : document.getElementById(section);
    if (named) {
      named.scrollIntoView();
      return;
    }
    // Scroll to the operation's heading only if it is out of sight: below the list or above the window.
    const top = article.current?.getBoundingClientRect().top ?? 0;
    if (isLinked && (top < 0 || top > innerHeight / 2)) article.current?.scrollIntoView();
  }, [section, isLinked]);
  const parameters = (operation.parameters ?? []).map((parameter) => resolved(specification, parameter));
  const body = operation.requestBody?.content["application/json"]?.schema;
  const succeeded = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
  const errors = Object.keys(operation.responses).filter((status) => /^[45]/.test(status));
  return (
    <article class="operation" ref={article}>
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
        <Section of={operation.operationId} name="Parameters">
          <ul class="members">
            {parameters.map((parameter) => (
              <li key={parameter.name}>
                <code class="name">{parameter.name}</code>{" "}
                <span class="soft">
                  {kind(specification, parameter.schema)}, in {parameter.in}
                </span>
                {parameter.required && <span class="required"> required</span>}
                {parameter.description && <p>{parameter.description}</p>}
                <Facts schema={resolved(specification, parameter.schema)} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {body && (
        <Section of={operation.operationId} name="Body">
          <Members specification={specification} schema={body} />
        </Section>
      )}
      {succeeded && (
        <Section of={operation.operationId} name="Response">
          <p>{resolved(specification, succeeded[1]).description}</p>
          {Object.entries(resolved(specification, succeeded[1]).content ?? {}).map(([type, media]) => {
            const schema = media.itemSchema ?? media.schema;
            return (
              <div key={type}>
                <p class="soft">
                  <code>{type}</code>
                  {media.itemSchema && ", for each event"}
                </p>
                {schema && <Members specification={specification} schema={schema} />}
              </div>
            );
          })}
          {errors.length > 0 && <p class="soft">Errors: {[...errors].sort().join(", ")}.</p>}
        </Section>
      )}
      <Section of={operation.operationId} name="Try it">
        <Try listed={listed} parameters={parameters} />
      </Section>
    </article>
  );
}

/** A section of an operation, with a heading that links to it. */
function Section(props: { of: string; name: string; children: ComponentChildren }) {
  const id = props.name.toLowerCase().replaceAll(" ", "-");
  return (
    <section id={id}>
      <h3>
        <a href={href(`reference/${props.of}/${id}`)}>{props.name}</a>
      </h3>
      {props.children}
    </section>
  );
}
