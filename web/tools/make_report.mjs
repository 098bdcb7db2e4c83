// node tools/make_report.mjs results.json report.html: what norma::write_report does, for work on the page itself.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export function makeReport(results) {
  const page = readFileSync(new URL("../dist/report.html", import.meta.url), "utf8");
  const json = (typeof results === "string" ? results : JSON.stringify(results)).replace(/</g, "\\u003c");
  const hole = "/*norma:results*/", at = page.indexOf(hole);
  if (at < 0 || page.indexOf(hole, at + 1) >= 0) throw new Error("dist/report.html must have exactly one hole for the data");
  return page.slice(0, at) + json + page.slice(at + hole.length);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [input, output] = process.argv.slice(2);
  if (!input || !output) throw new Error("usage: make_report.mjs results.json report.html");
  writeFileSync(output, makeReport(readFileSync(input, "utf8")));
}
