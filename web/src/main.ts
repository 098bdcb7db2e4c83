// Reads the data inside the page and draws the report: the top at once, the rest in idle moments.
import "./style.css";
import { readResults } from "./data/read_results";
import type { Results } from "./data/results";
import { buildPage, showFailure } from "./page";
import { applyLink, readLink, readTheme, setTheme } from "./state";

const kSlice = 24;  // milliseconds of drawing before the browser may breathe

function goToLink(): void {
  applyLink();
  const { section } = readLink();
  if (section !== "") document.getElementById(section)?.scrollIntoView();
}

function start(): void {
  const root = document.getElementById("app")!;
  const json = document.getElementById("norma-results")?.textContent ?? "";
  setTheme(readTheme());
  let results: Results;
  try {
    results = readResults(json);
  } catch (error) {
    showFailure(root, `Its data could not be read: ${error instanceof Error ? error.message : String(error)}`);
    document.documentElement.dataset.ready = "failed";
    return;
  }
  applyLink();
  const { page, pending } = buildPage(results, json);
  root.append(...page);
  const drawAll = (): void => {
    while (pending.length > 0) pending.shift()!();
  };
  const drawSome = (): void => {
    const until = performance.now() + kSlice;
    while (pending.length > 0 && performance.now() < until) pending.shift()!();
    if (pending.length > 0) return void setTimeout(drawSome);
    goToLink();
    markSection();
    requestAnimationFrame(() => (document.documentElement.dataset.ready = "true"));
  };
  setTimeout(drawSome);
  addEventListener("beforeprint", drawAll);
  addEventListener("hashchange", goToLink);
}

// Marks in the contents where the reader is.
function markSection(): void {
  const links = new Map([...document.querySelectorAll<HTMLAnchorElement>("nav.contents a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set<string>();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
    const current = [...links.keys()].find((id) => seen.has(id));
    for (const [id, link] of links) id === current ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }, { rootMargin: "-10% 0px -70% 0px" });
  for (const id of links.keys()) {
    const section = document.getElementById(id);
    if (section) watcher.observe(section);
  }
}

start();
