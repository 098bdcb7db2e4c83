// What the reader has chosen: hidden schemes and the theme. Hidden schemes apply to every figure and travel in the link.

type Listener = () => void;

const hidden = new Set<string>();
const listeners = new Map<Listener, Element>();

export const isHidden = (scheme: string): boolean => hidden.has(scheme);
export const anyHidden = (): boolean => hidden.size > 0;

// Called as long as `owner` is in the page.
export const onVisibilityChange = (owner: Element, listener: Listener): void => void listeners.set(listener, owner);

function notify(): void {
  for (const [listener, owner] of listeners) {
    if (owner.isConnected) listener();
    else listeners.delete(listener);
  }
}

function announce(): void {
  writeLink();
  notify();
}

export function toggleScheme(scheme: string): void {
  if (!hidden.delete(scheme)) hidden.add(scheme);
  announce();
}

export function showOnly(scheme: string, all: string[]): void {
  const alone = all.every((name) => name === scheme || hidden.has(name)) && !hidden.has(scheme);
  hidden.clear();
  if (!alone) for (const name of all) if (name !== scheme) hidden.add(name);
  announce();
}

export function showAll(): void {
  hidden.clear();
  announce();
}

// A link is "#section" or "#section?hide=post,keel".
export function readLink(): { section: string; hide: string[] } {
  const [section = "", query = ""] = location.hash.replace(/^#/, "").split("?");
  const hide = new URLSearchParams(query).get("hide");
  return { section, hide: hide === null || hide === "" ? [] : hide.split(",") };
}

export function linkTo(section: string): string {
  if (hidden.size === 0) return `#${section}`;
  return `#${section}?${new URLSearchParams({ hide: [...hidden].join(",") })}`;
}

function writeLink(): void {
  history.replaceState(null, "", linkTo(readLink().section) || "#");
}

export function applyLink(): void {
  const wanted = readLink().hide;
  if (wanted.length === hidden.size && wanted.every((name) => hidden.has(name))) return;
  hidden.clear();
  for (const name of wanted) hidden.add(name);
  notify();
}

export type Theme = "auto" | "light" | "dark";
const kThemeKey = "norma-theme";

export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(kThemeKey);
    return stored === "light" || stored === "dark" ? stored : "auto";
  } catch {
    return "auto";  // a page from disk may have no storage
  }
}

export function setTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "auto") localStorage.removeItem(kThemeKey);
    else localStorage.setItem(kThemeKey, theme);
  } catch {
    // as above
  }
}
