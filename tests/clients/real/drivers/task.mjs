// What every driver is told, by one object of JSON on stdin, and how it says what came of it.
import { text } from 'node:stream/consumers';

export async function readTask() {
  return JSON.parse(await text(process.stdin));
}

export function messageOf({ instruction, original, update }) {
  return `<instruction>${instruction}</instruction>\n<code>${original}</code>\n<update>${update}</update>`;
}

export function tell(outcome) {
  console.log(JSON.stringify(outcome));
}
