/** Base64 with what browsers and servers have alike. */

// More arguments than some tens of thousands overflow the stack of `fromCharCode`.
const BYTES_PER_PIECE = 0x8000;

/** Bytes as Base64. */
export function encodeBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; start += BYTES_PER_PIECE) {
    pieces.push(String.fromCharCode(...bytes.subarray(start, start + BYTES_PER_PIECE)));
  }
  return btoa(pieces.join(""));
}

/** The bytes of Base64, or null if it is none. */
export function tryDecodeBase64(text: string): Uint8Array | null {
  let characters: string;
  try {
    characters = atob(text);
  } catch {
    return null;
  }
  return Uint8Array.from(characters, (character) => character.charCodeAt(0));
}
