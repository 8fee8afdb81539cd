// A request as code.
import { useState } from "preact/hooks";
import { Copy } from "../ui/parts.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { code, isShortened, LANGUAGES, type Language } from "./code.ts";
import type { Prepared } from "./conversation.ts";

export function CodeView(props: { prepared: Prepared }) {
  const [language, setLanguage] = useState<Language>("Python");
  const shown = code(props.prepared, language, location.origin);
  return (
    <section class="card code" aria-labelledby="as-code">
      <div class="row">
        <h2 id="as-code">As code</h2>
        <Copy text={shown} />
      </div>
      <Tabs
        label="Language"
        tabs={LANGUAGES.map((name) => ({ value: name, label: name }))}
        value={language}
        onChange={(value) => setLanguage(LANGUAGES.find((name) => name === value) ?? "Python")}
      >
        <pre tabIndex={0} role="region" aria-label={`The request in ${language}`}>
          {shown}
        </pre>
        <p class="soft">
          {isShortened(props.prepared) && "Long strings are truncated here. "}
          The code reads the key from <code>GATEWRIGHT_API_KEY</code>
          {language !== "curl" && (
            <>
              {" "}
              and the base URL, <code>{location.origin}</code>, from <code>GATEWRIGHT_BASE_URL</code>
            </>
          )}
          .{shown.includes("jq ") && " It needs jq."}
        </p>
      </Tabs>
    </section>
  );
}
