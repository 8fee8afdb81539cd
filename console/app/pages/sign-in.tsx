// Asks for a key. It stays in this tab.
import { useState } from "preact/hooks";
import { about, isSignedIn, lost, type Role, signIn } from "../session.ts";
import { Head, Line, Problem, Submit } from "../ui/parts.tsx";

export function SignIn(props: { needs: Role | "any"; title: string }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const wantsAdmin = props.needs === "admin";
  const absent = wantsAdmin && about.value?.admin === false;
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const role = await signIn(key.trim());
      setKey("");
      if (props.needs !== "any" && role !== props.needs) {
        const other =
          role === "admin"
            ? "an admin key, and this page needs an API key"
            : "an API key, and this page needs the admin key";
        setError(new Error(`That is ${other}. You are signed in with it elsewhere.`));
      }
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  return (
    <div class="narrow">
      <Head title={isSignedIn.value ? props.title : "Sign in"}>
        {wantsAdmin
          ? "This page is for operators and needs the admin key of the gateway."
          : "Use an API key of this gateway, or its admin key."}
      </Head>
      {absent ? (
        <p class="notice">
          This gateway has no admin key. Start it with one in <code>GATEWRIGHT_SERVE_ADMIN_KEY</code> to see
          this page.
        </p>
      ) : (
        <form class="card" onSubmit={submit}>
          <Line
            label={wantsAdmin ? "Admin key" : "Key"}
            type="password"
            autocomplete="off"
            required
            value={key}
            onInput={setKey}
            hint="It stays in this tab until you sign out or close it, and goes to this gateway alone."
          />
          <Submit words={busy ? "Signing in …" : "Sign in"} off={busy} />
          <Problem error={error ?? (lost.value ? new Error(lost.value) : null)} />
        </form>
      )}
      {!isSignedIn.value && (
        <p class="soft">
          <code>gatewright serve</code> prints its key when it starts, unless one is configured.
        </p>
      )}
    </div>
  );
}
