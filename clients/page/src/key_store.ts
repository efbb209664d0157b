/** The API key, kept until the browser's tab is closed and nowhere else. */

const NAME = "apply-service-key";

export function readKey(): string | null {
  return sessionStorage.getItem(NAME);
}

/** Keep a key; an empty text forgets the one that was kept. */
export function keepKey(key: string): void {
  if (key === "") {
    sessionStorage.removeItem(NAME);
  } else {
    sessionStorage.setItem(NAME, key);
  }
}
