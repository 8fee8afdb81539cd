export * from "./dist/index.js";
export { Client as default } from "./dist/index.js";
