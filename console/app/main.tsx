import "./style.css";
import { render } from "preact";
import { applyScheme } from "./scheme.ts";
import { restore, signInByCode } from "./session.ts";
import { Shell } from "./shell.tsx";

applyScheme();
if (!signInByCode()) restore();
const root = document.getElementById("console");
if (root) render(<Shell />, root);
