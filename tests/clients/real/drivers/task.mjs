// What every driver is told, by one object of JSON on stdin, and how it says what came of it.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

// Tells what comes of an edit; the answer to a question is written to the file at once.
export async function answer(task, ask, ErrorType) {
  try {
    const pieces = await ask({});
    tell({ text: pieces.join(''), pieces: pieces.length });
  } catch (error) {
    if (!(error instanceof ErrorType)) throw error;
    const choices = error.error?.choices ?? [];
    const choice = choices.find((one) => task.chosen && one.diff.includes(task.chosen));
    if (!choice) return tell({ error: error.message });
    await writeFile(join(task.folder, task.file), (await ask({ resolve: choice.id })).join(''));
    tell({ text: null });
  }
}
