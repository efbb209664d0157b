/** The extension in a stand-in for VS Code, at the service whose address is in APPLY_SERVICE_URL. */

import assert from "node:assert/strict";
import test from "node:test";

import { Editor } from "./editor.mjs";

const url = process.env.APPLY_SERVICE_URL;
const GREETING = "import sys\r\n\r\n\r\ndef greet(name):\r\n    print('Hellö 👋🏽 ' + name)\r\n";
const UPDATE =
  "# ... existing code ...\ndef greet(name, mark='!'):\n    print('Hellö 👋🏽 ' + name + mark)\n";
const GREETED = GREETING.replace("(name)", "(name, mark='!')").replace("+ name)", "+ name + mark)");
const DOUBTFUL = "a = 1\n\nb = 2\n\na = 1\n";
const DOUBT = "# ...\na = 3\n# ...\n";

function editorWith(text, update, settings = {}) {
  const editor = new Editor();
  editor.settings = { url, preview: "never", ...settings };
  editor.clipboard = update;
  return [editor, editor.open("/project/greet.py", text)];
}

test("the update in the clipboard changes the open file", async () => {
  const [editor, document] = editorWith(GREETING, UPDATE);
  await editor.run("applyClipboard");
  assert.deepEqual(editor.errors, []);
  assert.equal(document.text, GREETED);
  assert.match(editor.status.tooltip, /^greet\.py: applied/);
});

test("a preview is taken by the button of its message, and its tab is closed", async () => {
  const [editor, document] = editorWith(GREETING, UPDATE, { preview: "always" });
  editor.answer = async (_message, buttons) => {
    assert.equal(document.text, GREETING);
    assert.equal(editor.tabs[0].text, GREETED);
    assert.equal(editor.contexts["applyService.isPreviewing"], true);
    return buttons[0];
  };
  await editor.run("applyClipboard");
  assert.equal(document.text, GREETED);
  assert.deepEqual(editor.tabs, []);
  assert.equal(editor.contexts["applyService.isPreviewing"], false);
});

test("a preview is discarded by the button of the editor", async () => {
  const [editor, document] = editorWith(GREETING, UPDATE, { preview: "always" });
  editor.answer = async () => {
    setImmediate(() => editor.run("discard"));
    return undefined;
  };
  await editor.run("applyClipboard");
  assert.equal(document.text, GREETING);
  assert.deepEqual(editor.tabs, []);
});

test("what was typed meanwhile is not written over", async () => {
  const [editor, document] = editorWith(GREETING, UPDATE, { preview: "always" });
  editor.answer = async (_message, buttons) => {
    editor.type(document, `${GREETING}# typed\r\n`);
    return buttons[0];
  };
  await editor.run("applyClipboard");
  assert.equal(document.text, `${GREETING}# typed\r\n`);
  assert.match(editor.errors[0], /has changed meanwhile/);
});

test("an editor that refuses is said so", async () => {
  const [editor, document] = editorWith(GREETING, UPDATE);
  editor.takesEdits = false;
  await editor.run("applyClipboard");
  assert.equal(document.text, GREETING);
  assert.match(editor.errors[0], /did not take the edit/);
});

test("a doubt is a quick pick, and its answer the result", async () => {
  const [editor, document] = editorWith(DOUBTFUL, DOUBT);
  editor.pick = async (items) => items[1];
  await editor.run("applyClipboard");
  assert.equal(document.text, "a = 3\n\nb = 2\n\na = 1\n");
  assert.ok(editor.picks[0].every(({ label, detail }) => label && detail));
  const [dismissed, same] = editorWith(DOUBTFUL, DOUBT);
  await dismissed.run("applyClipboard");
  assert.equal(same.text, DOUBTFUL);
  assert.deepEqual(dismissed.errors, []);
});

test("findings of a rejected update are diagnostics until the file changes", async () => {
  const [editor, document] = editorWith(GREETING, "<<<<<<< SEARCH\nnone\n=======\nx\n>>>>>>> REPLACE\n");
  await editor.run("applyClipboard");
  assert.equal(document.text, GREETING);
  assert.equal(editor.errors.length, 1);
  const found = editor.diagnostics.get(document.uri.toString()) ?? [];
  editor.type(document, GREETED);
  assert.equal(found.length > 0, !editor.diagnostics.has(document.uri.toString()));
});

test("a service that cannot be reached is an error in the status item", async () => {
  const [editor, document] = editorWith(GREETING, UPDATE, { url: "http://127.0.0.1:9" });
  await editor.run("checkService");
  assert.equal(editor.status.text, "$(error) apply");
  assert.equal(editor.errors.length, 1);
  assert.equal(document.text, GREETING);
});

test("a service that takes edits says so", async () => {
  const [editor] = editorWith(GREETING, UPDATE);
  await editor.run("checkService");
  assert.match(editor.messages[0], /the service takes edits/);
});

test("nothing to apply, or nothing to change, is an error", async () => {
  const [editor] = editorWith(GREETING, " \n");
  await editor.run("applyClipboard");
  editor.active = undefined;
  await editor.run("applyClipboard");
  assert.equal(editor.errors.length, 2);
});

test("the key is kept in the secret storage, and forgotten", async () => {
  const [editor] = editorWith(GREETING, UPDATE);
  editor.input = async () => "secret";
  await editor.run("setKey");
  assert.deepEqual([...editor.secrets.values()], ["secret"]);
  editor.input = async () => undefined;
  await editor.run("setKey");
  assert.equal(editor.secrets.size, 1);
  editor.input = async () => "";
  await editor.run("setKey");
  assert.equal(editor.secrets.size, 0);
});

test("a code block of an answer is applied to the file that it names", async () => {
  const [editor, document] = editorWith(GREETING, "");
  const chat = editor.open("/project/answer.md", `Here:\n\n\`\`\`python greet.py\n${UPDATE}\`\`\`\n`);
  const [lens, ...others] = editor.lenses.provideCodeLenses(chat);
  assert.deepEqual(others, []);
  assert.equal(lens.command.title, "Apply to greet.py");
  editor.found = [document.uri];
  await editor.commands.get(lens.command.command)(...lens.command.arguments);
  assert.equal(document.text, GREETED);
});

test("a code block that names no file asks for one", async () => {
  const [editor, document] = editorWith(GREETING, "");
  const chat = editor.open("/project/answer.md", `\`\`\`\n${UPDATE}\`\`\`\n`);
  const [lens] = editor.lenses.provideCodeLenses(chat);
  editor.pick = async (items) => {
    assert.deepEqual(items.map(({ label }) => label), ["greet.py", "Another file…"]);
    return items[0];
  };
  await editor.commands.get(lens.command.command)(...lens.command.arguments);
  assert.equal(document.text, GREETED);
});
