import { defineConfig } from "vite";
import { operations } from "./operations.ts";

export default defineConfig({
  root: "app",
  base: "/console/",
  plugins: [operations()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2023",
    // Everything is a separate file: the page's policy allows nothing inline.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
