import { defineConfig } from "vite";

// The names have no hash: the server sends an ETag, and a change of one file is a change of one file in the repository.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../service/bmq/view/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2000,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
