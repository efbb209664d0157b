/** Stands for the module `vscode`: documents, tabs and secrets of one window, and what it was told. */

import Module, { createRequire } from "node:module";

const require = createRequire(import.meta.url);

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(...given) {
    const [first, second] = given.length === 4
      ? [new Position(given[0], given[1]), new Position(given[2], given[3])]
      : given;
    Object.assign(this, { start: first, end: second });
  }

  get isEmpty() {
    return this.start.line === this.end.line && this.start.character === this.end.character;
  }
}

class Uri {
  constructor({ scheme, path, query = "" }) {
    Object.assign(this, { scheme, path, query });
  }

  static from(parts) {
    return new Uri(parts);
  }

  static file(path) {
    return new Uri({ scheme: "file", path });
  }

  toString() {
    return `${this.scheme}://${this.path}${this.query && `?${this.query}`}`;
  }
}

class Document {
  constructor(uri, text) {
    Object.assign(this, { uri, text, version: 1 });
  }

  #starts() {
    const starts = [0];
    for (const { index, 0: end } of this.text.matchAll(/\r\n|\n|\r/g)) {
      starts.push(index + end.length);
    }
    return starts;
  }

  get lineCount() {
    return this.#starts().length;
  }

  lineAt(line) {
    const text = this.text.slice(this.#starts()[line]).split(/\r\n|\n|\r/, 1)[0];
    return { text, range: new Range(line, 0, line, text.length) };
  }

  /** As VS Code does, an offset between "\r" and "\n" becomes the end of the line. */
  positionAt(offset) {
    const starts = this.#starts();
    const line = starts.findLastIndex((start) => start <= offset);
    return new Position(line, Math.min(offset - starts[line], this.lineAt(line).text.length));
  }

  offsetAt({ line, character }) {
    const starts = this.#starts();
    return line < starts.length ? starts[line] + character : this.text.length;
  }

  getText(range) {
    return range ? this.text.slice(this.offsetAt(range.start), this.offsetAt(range.end)) : this.text;
  }
}

class WorkspaceEdit {
  changes = [];

  replace(uri, range, text) {
    this.changes.push({ uri, range, text });
  }
}

/** A window with the extension in it; its members are what a person sees and answers. */
export class Editor {
  documents = new Map();
  messages = [];
  errors = [];
  picks = [];
  secrets = new Map();
  settings = {};
  diagnostics = new Map();
  tabs = [];
  contexts = {};
  commands = new Map();
  clipboard = "";
  active = undefined;
  found = [];
  takesEdits = true;
  answer = async () => undefined;
  pick = async () => undefined;
  input = async () => undefined;

  constructor() {
    this.vscode = this.#module();
    const original = Module._load;
    Module._load = (name, ...rest) => (name === "vscode" ? this.vscode : original(name, ...rest));
    try {
      const path = require.resolve("../dist/extension.cjs");
      delete require.cache[path];
      this.context = {
        subscriptions: [],
        secrets: {
          get: async (name) => this.secrets.get(name),
          store: async (name, value) => void this.secrets.set(name, value),
          delete: async (name) => void this.secrets.delete(name),
        },
      };
      require(path).activate(this.context);
    } finally {
      Module._load = original;
    }
  }

  open(path, text) {
    const document = new Document(Uri.file(path), text);
    this.documents.set(document.uri.toString(), document);
    this.active = { document, selection: new Range(0, 0, 0, 0) };
    return document;
  }

  type(document, text) {
    document.text = text;
    document.version += 1;
    this.changed?.({ document });
  }

  run(name, ...given) {
    return this.commands.get(`applyService.${name}`)(...given);
  }

  #module() {
    const editor = this;
    const nothing = { dispose() {} };
    const relative = (uri) => (uri.path ?? uri).replace(/^\/project\//, "");
    class TabInputTextDiff {
      constructor(original, modified) {
        Object.assign(this, { original, modified });
      }
    }
    return {
      Position, Range, Uri, WorkspaceEdit, TabInputTextDiff,
      StatusBarAlignment: { Left: 1, Right: 2 },
      ProgressLocation: { Notification: 15 },
      DiagnosticSeverity: { Error: 0, Warning: 1 },
      CodeLens: class {
        constructor(range, command) {
          Object.assign(this, { range, command });
        }
      },
      Diagnostic: class {
        constructor(range, message, severity) {
          Object.assign(this, { range, message, severity });
        }
      },
      env: { clipboard: { readText: async () => editor.clipboard } },
      languages: {
        createDiagnosticCollection: () => ({
          set: (uri, found) => editor.diagnostics.set(uri.toString(), found),
          delete: (uri) => editor.diagnostics.delete(uri.toString()),
          dispose() {},
        }),
        registerCodeLensProvider: (_selector, provider) => {
          editor.lenses = provider;
          return nothing;
        },
      },
      commands: {
        registerCommand: (name, run) => {
          editor.commands.set(name, run);
          return nothing;
        },
        executeCommand: async (name, ...given) => {
          if (name === "setContext") {
            editor.contexts[given[0]] = given[1];
          } else if (name === "vscode.diff") {
            const [left, right, title] = given;
            const text = editor.previews.provideTextDocumentContent(right);
            editor.tabs.push({ title, text, input: new TabInputTextDiff(left, right) });
          }
        },
      },
      workspace: {
        get textDocuments() {
          return [...editor.documents.values()];
        },
        asRelativePath: relative,
        getConfiguration: () => ({ get: (name) => editor.settings[name] }),
        openTextDocument: async (uri) => editor.documents.get(uri.toString()),
        findFiles: async () => editor.found,
        registerTextDocumentContentProvider: (_scheme, provider) => {
          editor.previews = provider;
          return nothing;
        },
        onDidChangeTextDocument: (listener) => {
          editor.changed = listener;
          return nothing;
        },
        applyEdit: async ({ changes }) => {
          if (editor.takesEdits) {
            for (const { uri, range, text } of changes) {
              const document = editor.documents.get(uri.toString());
              const [start, end] = [document.offsetAt(range.start), document.offsetAt(range.end)];
              editor.type(document, document.text.slice(0, start) + text + document.text.slice(end));
            }
          }
          return editor.takesEdits;
        },
      },
      window: {
        get activeTextEditor() {
          return editor.active;
        },
        createStatusBarItem: () => (editor.status = { show() {}, dispose() {} }),
        showInformationMessage: (message, ...buttons) => {
          editor.messages.push(message);
          return editor.answer(message, buttons);
        },
        showErrorMessage: async (message) => void editor.errors.push(message),
        showQuickPick: (items) => {
          editor.picks.push(items);
          return editor.pick(items);
        },
        showInputBox: () => editor.input(),
        showOpenDialog: async () => editor.opened,
        showTextDocument: async () => {},
        withProgress: (_options, work) => work({}, { onCancellationRequested() {} }),
        tabGroups: {
          get all() {
            return [{ tabs: editor.tabs }];
          },
          close: async (tabs) => {
            editor.tabs = editor.tabs.filter((tab) => !tabs.includes(tab));
          },
        },
      },
    };
  }
}
