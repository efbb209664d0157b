/**
 * The header by which a balancer sends the edits of one file to one replica.
 *
 * `docs/affinity.json` of the service has test vectors.
 */

export const AFFINITY_HEADER = "X-Apply-Affinity";
const VERSION = "apply-affinity-1";
const MAX_START_BYTES = 1024;
const TENANT_DIGITS = 8;

/** What a request is about: a file by its path, or by its first bytes where it has none. */
export interface Subject {
  kind: "path" | "text";
  name: Uint8Array;
}

/** The file of an edit, which is known by 1,024 bytes where it has no path. */
export function subjectOf(path: string | null | undefined, original: string | Uint8Array): Subject {
  if (path) {
    return { kind: "path", name: encode(path) };
  }
  // One unit more than is needed, so that no surrogate pair is cut within the bytes that count.
  const start =
    typeof original === "string" ? encode(original.slice(0, MAX_START_BYTES + 1)) : original;
  return { kind: "text", name: start.subarray(0, MAX_START_BYTES) };
}

/**
 * 32 hexadecimal digits, the same for each edit that a caller sends of one file.
 *
 * Of the API key only 32 bits of its hash enter, so that nobody finds the key by this value. Null
 * where the platform has no SHA-256, as on pages that came neither by HTTPS nor from this machine.
 */
export async function affinityOf(subject: Subject, apiKey: string | null): Promise<string | null> {
  if (globalThis.crypto?.subtle === undefined) {
    return null;
  }
  const tenant = apiKey ? (await sha256(encode(apiKey))).slice(0, TENANT_DIGITS) : "";
  const head = encode(`${VERSION}\0${tenant}\0${subject.kind}\0`);
  const parts = new Uint8Array(head.length + subject.name.length);
  parts.set(head);
  parts.set(subject.name, head.length);
  return (await sha256(parts)).slice(0, 32);
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
