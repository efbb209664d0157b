// Applies edits as editors do: reads {"old", "edits"} a line, writes the new text as JSON a line.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const require = createRequire(process.argv[2]);
const { TextDocument } = require("vscode-languageserver-textdocument");

for await (const line of createInterface({ input: process.stdin })) {
  const { old, edits } = JSON.parse(line);
  const document = TextDocument.create("file:///a", "plaintext", 1, old);
  console.log(JSON.stringify(TextDocument.applyEdits(document, edits)));
}
