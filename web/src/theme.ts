export type Theme = "auto" | "light" | "dark";
const kKey = "norma-theme";

export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(kKey);
    return stored === "light" || stored === "dark" ? stored : "auto";
  } catch {
    return "auto";  // a page from disk may have no storage
  }
}

export function setTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "auto") localStorage.removeItem(kKey);
    else localStorage.setItem(kKey, theme);
  } catch {
    // as above
  }
}
