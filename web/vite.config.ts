// Builds dist/report.html: the page, its style and its program in one file with a hole for the data. The content
// security policy names the program by its hash, so nothing else can run, whatever the data says.
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

function oneFile(): Plugin {
  return {
    name: "norma-one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let page = "", program = "", style = "";
      for (const [name, item] of Object.entries(bundle)) {
        if (item.type === "chunk") program += item.code;
        else if (name.endsWith(".css")) style += item.source;
        else if (name.endsWith(".html")) page = String(item.source);
        delete bundle[name];
      }
      // Inside a script element these would end it or change how it is read; in strings and patterns they mean the same.
      program = program.trim().replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--");
      const hash = createHash("sha256").update(program).digest("base64");
      const policy =
        `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; ` +
        "base-uri 'none'; form-action 'none'";
      page = page
        .replace(/\s*<script type="module"[^>]*><\/script>/g, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/g, "")
        .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("<!--style-->", () => `<style>${style.trim()}</style>`)
        .replace("<!--program-->", () => `<script type="module">${program}</script>`);
      this.emitFile({ type: "asset", fileName: "report.html", source: page });
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [oneFile()],
  build: { target: "es2022", modulePreload: false, assetsInlineLimit: 0, reportCompressedSize: false },
});
