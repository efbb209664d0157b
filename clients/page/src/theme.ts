/** Light or dark: as the system has it, or as the switch says. */

import { byId, element } from "./elements";

const NAME = "apply-service-theme";
const CHOICES = { auto: "System", light: "Light", dark: "Dark" } as const;
type Choice = keyof typeof CHOICES;

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const listeners: (() => void)[] = [];

/** Called after every change of the colours. */
export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

/** Bind the switch and set what it said the last time. */
export function startTheme(): void {
  const select = byId<HTMLSelectElement>("theme");
  for (const [value, text] of Object.entries(CHOICES)) {
    select.append(element("option", { value }, text));
  }
  select.value = savedChoice();
  select.addEventListener("change", () => {
    localStorage.setItem(NAME, select.value);
    show(select.value as Choice);
  });
  prefersDark.addEventListener("change", () => show(savedChoice()));
  show(savedChoice());
}

function savedChoice(): Choice {
  const saved = localStorage.getItem(NAME);
  return saved === "light" || saved === "dark" ? saved : "auto";
}

function show(choice: Choice): void {
  const isDark = choice === "dark" || (choice === "auto" && prefersDark.matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
  // Swagger UI goes by this class.
  document.documentElement.classList.toggle("dark-mode", isDark);
  for (const listener of listeners) {
    listener();
  }
}
