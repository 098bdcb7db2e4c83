// Debian's Chromium, headless, driven by playwright-core; null where one of them is missing.
import { existsSync } from "node:fs";

const kPaths = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function launch() {
  const executablePath = kPaths.find((path) => path && existsSync(path));
  if (!executablePath) return null;
  const playwright = await import("playwright-core").catch(() => null);
  if (!playwright) return null;
  return playwright.chromium.launch({
    executablePath,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}
