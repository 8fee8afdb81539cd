// The frame around all pages: navigation, scheme, and sign-in state.
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Keys } from "./pages/keys.tsx";
import { Models } from "./pages/models.tsx";
import { Reports } from "./pages/reports.tsx";
import { Requests } from "./pages/requests.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { Tasks } from "./pages/tasks.tsx";
import { Upstreams } from "./pages/upstreams.tsx";
import { Usage } from "./pages/usage.tsx";
import { Webhooks } from "./pages/webhooks.tsx";
import { Playground } from "./playground/page.tsx";
import { Reference } from "./reference/page.tsx";
import { href, route } from "./router.ts";
import { choose, SCHEMES, type Scheme, scheme } from "./scheme.ts";
import { about, isRestoring, isSignedIn, keys, signOut } from "./session.ts";
import { Head } from "./ui/parts.tsx";

interface Page {
  path: string;
  title: string;
  /** The key that the page needs. */
  needs: "admin" | "any";
  page: ComponentType;
}

const PAGES: { title: string; pages: Page[] }[] = [
  {
    title: "Use",
    pages: [
      { path: "playground", title: "Playground", needs: "any", page: Playground },
      { path: "models", title: "Models", needs: "any", page: Models },
      { path: "reports", title: "Reports", needs: "any", page: Reports },
      { path: "reference", title: "API reference", needs: "any", page: Reference },
    ],
  },
  {
    title: "Operate",
    pages: [
      { path: "requests", title: "Requests", needs: "admin", page: Requests },
      { path: "usage", title: "Usage", needs: "admin", page: Usage },
      { path: "upstreams", title: "Upstreams", needs: "admin", page: Upstreams },
      { path: "tasks", title: "Video tasks", needs: "admin", page: Tasks },
      { path: "webhooks", title: "Webhooks", needs: "admin", page: Webhooks },
      { path: "keys", title: "Keys", needs: "admin", page: Keys },
    ],
  },
];

const ALL = PAGES.flatMap((group) => group.pages);

function has(needs: Page["needs"]): boolean {
  return needs === "any" ? isSignedIn.value : keys.value[needs] !== undefined;
}

export function Shell() {
  const [open, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const shown = ALL.find((page) => page.path === route.value.split("/")[0]);
  const first = useRef(true);
  const path = shown?.path;
  const isAllowed = shown !== undefined && has(shown.needs);
  const restoring = isRestoring.value;
  useEffect(() => {
    document.title = `${shown?.title ?? "Not found"} · Gatewright`;
    setOpen(false);
    // In the sign-in form, focus its field. After other navigation or sign-in, focus the heading: screen readers start there, and
    // the form that had the focus is gone. After a page load, start at the top, even if restored keys open the page.
    const field = isAllowed || restoring ? null : main.current?.querySelector<HTMLElement>("form input");
    if (field) field.focus();
    else if (!first.current) main.current?.querySelector<HTMLElement>("h1")?.focus();
    first.current = restoring;
  }, [path, isAllowed, restoring]);
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="side">
        <div class="bar">
          <a class="brand" href={href("playground")}>
            <Mark />
            Gatewright
          </a>
          <button
            type="button"
            class="button menu"
            aria-expanded={open}
            aria-controls="navigation"
            onClick={() => setOpen(!open)}
          >
            Menu
          </button>
        </div>
        <nav id="navigation" aria-label="Pages" class={open ? "open" : ""}>
          {PAGES.map((group) => (
            <section key={group.title} aria-labelledby={`group-${group.title}`}>
              <h2 id={`group-${group.title}`}>{group.title}</h2>
              <ul>
                {group.pages.map((page) => (
                  <li key={page.path}>
                    <a href={href(page.path)} aria-current={page === shown ? "page" : undefined}>
                      {page.title}
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          ))}
          <Who />
        </nav>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {shown ? <Guarded key={shown.path} page={shown} /> : <NotFound />}
      </main>
    </div>
  );
}

function NotFound() {
  return (
    <>
      <Head title="Page not found">There is no page {route.value} in this console.</Head>
      <p>
        <a href={href("playground")}>Go to the playground</a>
      </p>
    </>
  );
}

/** A page, or the sign-in form for the key that it needs. */
function Guarded({ page }: { page: Page }) {
  if (has(page.needs)) {
    const Shown = page.page;
    return <Shown />;
  }
  if (isRestoring.value) return <p class="soft">Signing in…</p>;
  return <SignIn needs={page.needs} title={page.title} />;
}

/** The sign-in state and the scheme. */
function Who() {
  return (
    <div class="who">
      {isSignedIn.value && (
        <>
          <p>
            {keys.value.client !== undefined && "API key"}
            {keys.value.client !== undefined && keys.value.admin !== undefined && " and "}
            {keys.value.admin !== undefined && "admin key"}
          </p>
          <button type="button" class="button small" onClick={signOut}>
            Sign out
          </button>
        </>
      )}
      <label class="scheme">
        <span>Theme</span>
        <select value={scheme.value} onChange={(event) => choose(event.currentTarget.value as Scheme)}>
          {SCHEMES.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {about.value && <p class="soft">Version {about.value.version}</p>}
    </div>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <path
        d="M7 26V13a9 9 0 0 1 18 0v13M12.5 26V14a3.5 3.5 0 0 1 7 0v12M4 26h24"
        fill="none"
        stroke="currentColor"
        stroke-width="2.6"
        stroke-linecap="round"
      />
    </svg>
  );
}
