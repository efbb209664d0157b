/** Where the service is and who asks: from options, else from the environment. */

import { AddressError } from "./errors.js";

export const URL_VARIABLE = "APPLY_SERVICE_URL";
export const KEY_VARIABLE = "APPLY_API_KEY";
export const DEFAULT_URL = "http://127.0.0.1:8722";

/** The address of a service without a slash at its end, and an API key or null. */
export interface Address {
  url: string;
  apiKey: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The address to use; empty variables count as unset. Throws AddressError. */
export function resolveAddress(
  url: string | undefined,
  apiKey: string | undefined,
  environment: Environment = processEnvironment(),
): Address {
  const chosen = url || environment[URL_VARIABLE] || DEFAULT_URL;
  const key = (apiKey || environment[KEY_VARIABLE] || "").trim() || null;
  if (key !== null && !/^[\x20-\x7e]+$/.test(key)) {
    throw new AddressError(
      `the API key has a character that no header can carry; see ${KEY_VARIABLE}`,
    );
  }
  return { url: checkUrl(chosen), apiKey: key };
}

/** The address without what `fetch` would refuse or drop. */
function checkUrl(text: string): string {
  let parts: URL | null = null;
  try {
    parts = new URL(text);
  } catch {
    // Said below, with what is wrong in other ways.
  }
  const isUsable =
    parts !== null &&
    ["http:", "https:"].includes(parts.protocol) &&
    !(parts.username || parts.password || parts.search || parts.hash);
  if (parts === null || !isUsable) {
    throw new AddressError(
      `the address ${JSON.stringify(text)} cannot be used; it must look like ${DEFAULT_URL}, ` +
        `as \`baseUrl\` or in ${URL_VARIABLE}, without a user, a query or a fragment`,
    );
  }
  return parts.href.replace(/\/+$/, "");
}

/** The variables of Node.js, Bun and Deno; a browser has none. */
function processEnvironment(): Environment {
  const host = globalThis as { process?: { env?: Environment } };
  return host.process?.env ?? {};
}
