// node web/tools/screenshot.mjs report.html out.png [--dark] [--width N] [--height N | --full] [--section id] [--pdf]
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [input, output, ...rest] = process.argv.slice(2);
if (!input || !output) {
  console.error("usage: screenshot.mjs report.html out.png [--dark] [--width N] [--height N | --full] [--section id] [--pdf]");
  process.exit(1);
}
const option = (name, fallback) => (rest.includes(name) ? rest[rest.indexOf(name) + 1] : fallback);
const browser = await launch();
if (!browser) {
  console.error("screenshot: needs chromium (a Debian package) and playwright-core (npm ci in web/)");
  process.exit(1);
}
const page = await browser.newPage({
  viewport: { width: Number(option("--width", 1320)), height: Number(option("--height", 900)) },
  colorScheme: rest.includes("--dark") ? "dark" : "light", reducedMotion: "reduce", deviceScaleFactor: 1,
});
page.on("console", (message) => { if (message.type() === "error") console.error(message.text()); });
page.on("pageerror", (error) => console.error(String(error)));
const section = option("--section", "");
await page.goto(pathToFileURL(resolve(input)).href + (section ? `#${section}` : ""));
await page.waitForSelector("html[data-ready]");
await page.waitForTimeout(200);
if (rest.includes("--pdf")) await page.pdf({ path: output, format: "A4", printBackground: false });
else await page.screenshot({ path: output, fullPage: rest.includes("--full") });
await browser.close();
