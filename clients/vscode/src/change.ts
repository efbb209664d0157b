/** The smallest replacement that turns one text into another. */

/** `text` takes the place of what lies between the UTF-16 offsets `start` and `end`. */
export interface Change {
  start: number;
  end: number;
  text: string;
}

/**
 * What lies between the common beginning and the common end of two texts.
 *
 * It begins and ends neither within a surrogate pair nor between "\r" and "\n".
 */
export function changeBetween(before: string, after: string): Change {
  const shortest = Math.min(before.length, after.length);
  let start = 0;
  while (start < shortest && before[start] === after[start]) {
    start += 1;
  }
  while (start > 0 && (splits(before, start) || splits(after, start))) {
    start -= 1;
  }
  let common = 0;
  while (
    common < shortest - start &&
    before[before.length - 1 - common] === after[after.length - 1 - common]
  ) {
    common += 1;
  }
  while (
    common > 0 &&
    (splits(before, before.length - common) || splits(after, after.length - common))
  ) {
    common -= 1;
  }
  const end = before.length - common;
  return { start, end, text: after.slice(start, after.length - common) };
}

/** Whether an offset lies within what an editor takes for one character. */
function splits(text: string, offset: number): boolean {
  const [left, right] = [text.charCodeAt(offset - 1), text.charCodeAt(offset)];
  const isPair = left >= 0xd800 && left < 0xdc00 && right >= 0xdc00 && right < 0xe000;
  return isPair || (text[offset - 1] === "\r" && text[offset] === "\n");
}
