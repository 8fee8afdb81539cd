// The sign-in form. The key stays in this tab.
import { useState } from "preact/hooks";
import { about, isSignedIn, lost, signIn } from "../session.ts";
import { Head, Line, Problem, Submit } from "../ui/parts.tsx";

export function SignIn(props: { needs: "admin" | "any"; title: string }) {
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
      if (wantsAdmin && role !== "admin") {
        const other = "an API key, but this page needs the admin key";
        setError(new Error(`That's ${other}. You're signed in with it on the other pages.`));
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
          ? "This page is for operators and needs the gateway's admin key."
          : "Use an API key for this gateway, or its admin key, which opens all pages."}
      </Head>
      {absent ? (
        <p class="notice">
          This gateway has no admin key. To use this page, start the gateway with one in{" "}
          <code>GATEWRIGHT_SERVE_ADMIN_KEY</code>.
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
            hint="It stays in this tab until you sign out or close the tab, and is sent only to this gateway."
          />
          <Submit words={busy ? "Signing in…" : "Sign in"} off={busy} />
          <Problem error={error ?? (lost.value ? new Error(lost.value) : null)} reveal />
        </form>
      )}
      {!absent && (wantsAdmin || !isSignedIn.value) && (
        <p class="soft">
          {wantsAdmin ? (
            <>
              The admin key is the one in <code>GATEWRIGHT_SERVE_ADMIN_KEY</code>, or{" "}
              <code>access.admin_key</code> in the gateway's configuration. If the gateway made it itself,{" "}
              <code>gatewright keys local</code> prints it.
            </>
          ) : (
            <>
              If you run the gateway on this machine and configured no key, <code>gatewright keys local</code>{" "}
              prints its keys.
            </>
          )}
        </p>
      )}
    </div>
  );
}
