// An edit of a file on disk by Morph's SDK, as its documentation has it, at another base address.
import { MorphClient } from '@morphllm/morphsdk';
import { readTask, tell } from './task.mjs';

const { url, key, folder, file, update, instruction } = await readTask();
const morph = new MorphClient({ apiKey: key });
const edit = { target_filepath: file, code_edit: update, instruction };
const { success, error } = await morph.fastApply.execute(edit, { morphApiUrl: url, baseDir: folder });
tell(success ? {} : { error });
