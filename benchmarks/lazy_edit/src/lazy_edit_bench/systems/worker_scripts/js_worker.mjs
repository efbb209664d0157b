// Runs jsdiff in a folder with its own node_modules: a JSON object a line in, one a line out.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const { applyPatch } = require('diff');

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try {
    const text = applyPatch(asked.original, asked.update);
    answer = text === false ? { status: 'refused', note: 'applyPatch says no' } : { status: 'applied', text };
  } catch (error) {
    answer = { status: 'refused', note: String(error).slice(0, 300) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
