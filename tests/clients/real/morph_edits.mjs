// Edits files with Morph's SDK, as its documentation has it, at another base address.
//
//     node morph_edits.mjs PACKAGES URL FOLDER < edits
//
// PACKAGES is a folder with the package in its node_modules. Each line of the input is an edit of a
// file in FOLDER with `file`, `update` and `instruction`; a line for each says what came of it.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [packages, morphApiUrl, baseDir] = process.argv.slice(2);
const { MorphClient } = createRequire(`${packages}/`)('@morphllm/morphsdk');

const morph = new MorphClient({ apiKey: 'none' });
for await (const line of createInterface({ input: process.stdin })) {
  const { file, update, instruction } = JSON.parse(line);
  const edit = { target_filepath: file, code_edit: update, instruction };
  const { success, error } = await morph.fastApply.execute(edit, { morphApiUrl, baseDir });
  console.log(JSON.stringify({ success, error }));
}
