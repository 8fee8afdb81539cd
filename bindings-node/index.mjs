// One copy of everything for both module systems: this file only renames what the CommonJS build exports.
export * from "./dist/index.js";
