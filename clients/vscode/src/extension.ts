/**
 * The extension: commands, the lens on code blocks, the status item.
 *
 * - applier.ts      applies one update to one document, with questions and preview
 * - preview.ts      a result beside the file, to be accepted or discarded
 * - blocks.ts       code blocks of a chat, and the files that they name
 * - change.ts       the smallest replacement that turns one text into another
 */

import * as vscode from "vscode";
import { ApplyClient } from "apply-client";

import { Applier } from "./applier.js";
import { codeBlocks, pathOfBlock } from "./blocks.js";
import { Previews } from "./preview.js";

const KEY = "applyService.key";

export function activate(context: vscode.ExtensionContext): void {
  const status = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Right);
  status.name = "apply-service";
  status.command = "applyService.checkService";
  show(status, "$(check-all) apply", "Check the service");
  status.show();
  const findings = vscode.languages.createDiagnosticCollection("apply-service");
  const previews = new Previews();
  const client = async (): Promise<ApplyClient> =>
    new ApplyClient({
      baseUrl: vscode.workspace.getConfiguration("applyService").get<string>("url"),
      apiKey: (await context.secrets.get(KEY)) ?? undefined,
    });
  const applier = new Applier(client, previews, findings, (text, tooltip) =>
    show(status, text, tooltip),
  );
  const commands: Record<string, (...given: never[]) => unknown> = {
    applyClipboard: () => applyClipboard(applier),
    applySelection: () => applySelection(applier),
    applyBlock: (uri: vscode.Uri, range: vscode.Range) => applyBlock(applier, uri, range),
    accept: () => previews.decide(true),
    discard: () => previews.decide(false),
    setKey: () => setKey(context),
    checkService: async () => checkService(await client(), status),
  };
  context.subscriptions.push(
    status,
    findings,
    previews,
    vscode.languages.registerCodeLensProvider(
      [{ language: "markdown" }, { scheme: "untitled" }],
      { provideCodeLenses: lensesOf },
    ),
    vscode.workspace.onDidChangeTextDocument(({ document }) => applier.forget(document)),
    ...Object.entries(commands).map(([name, run]) =>
      vscode.commands.registerCommand(`applyService.${name}`, run),
    ),
  );
}

function show(item: vscode.StatusBarItem, text: string, tooltip: string): void {
  item.text = text;
  item.tooltip = tooltip;
}

async function applyClipboard(applier: Applier): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  const update = await vscode.env.clipboard.readText();
  if (document === undefined) {
    void vscode.window.showErrorMessage("apply-service: open the file that is to be changed");
  } else if (update.trim() === "") {
    void vscode.window.showErrorMessage("apply-service: the clipboard has no text; copy an update");
  } else {
    await applier.apply(document, update);
  }
}

async function applySelection(applier: Applier): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor !== undefined && !editor.selection.isEmpty) {
    await applyRange(applier, editor.document, editor.selection, null);
  }
}

async function applyBlock(applier: Applier, uri: vscode.Uri, range: vscode.Range): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uri);
  const block = codeBlocks(document.getText()).find(({ firstLine }) => firstLine === range.start.line);
  await applyRange(applier, document, range, block === undefined ? null : pathOfBlock(block));
}

/** Apply a part of a document to the file that it names, or that the person chooses. */
async function applyRange(
  applier: Applier,
  source: vscode.TextDocument,
  range: vscode.Range,
  path: string | null,
): Promise<void> {
  const target = (await fileNamed(path)) ?? (await chooseFile(source));
  if (target !== undefined) {
    await applier.apply(await vscode.workspace.openTextDocument(target), source.getText(range));
  }
}

async function fileNamed(path: string | null): Promise<vscode.Uri | undefined> {
  if (path === null) {
    return undefined;
  }
  const found = await vscode.workspace.findFiles(`**/${path}`, "**/node_modules/**", 2);
  return found.length === 1 ? found[0] : undefined;
}

async function chooseFile(source: vscode.TextDocument): Promise<vscode.Uri | undefined> {
  const open = vscode.workspace.textDocuments.filter(
    ({ uri }) => uri.scheme === "file" && uri.toString() !== source.uri.toString(),
  );
  const other = "Another file…";
  const items = open.map(({ uri }) => ({ label: vscode.workspace.asRelativePath(uri), uri }));
  const chosen = await vscode.window.showQuickPick<{ label: string; uri?: vscode.Uri }>(
    [...items, { label: other }],
    { title: "Which file is to be changed?" },
  );
  if (chosen === undefined || chosen.uri !== undefined) {
    return chosen?.uri;
  }
  return (await vscode.window.showOpenDialog({ canSelectMany: false }))?.[0];
}

function lensesOf(document: vscode.TextDocument): vscode.CodeLens[] {
  return codeBlocks(document.getText()).map((block) => {
    const range = new vscode.Range(block.firstLine, 0, block.lastLine + 1, 0);
    const title = `Apply to ${pathOfBlock(block) ?? "a file…"}`;
    const command = "applyService.applyBlock";
    return new vscode.CodeLens(range, { title, command, arguments: [document.uri, range] });
  });
}

async function setKey(context: vscode.ExtensionContext): Promise<void> {
  const key = await vscode.window.showInputBox({
    title: "API key of the service",
    prompt: "It is kept in the secret storage. Leave it empty to forget it.",
    password: true,
    ignoreFocusOut: true,
  });
  if (key === "") {
    await context.secrets.delete(KEY);
  } else if (key !== undefined) {
    await context.secrets.store(KEY, key);
  }
}

async function checkService(client: ApplyClient, status: vscode.StatusBarItem): Promise<void> {
  try {
    const { isReady, reason } = await client.status();
    const words = isReady ? "the service takes edits" : `the service is not ready: ${reason ?? ""}`;
    show(status, isReady ? "$(check-all) apply" : "$(warning) apply", words);
    void vscode.window.showInformationMessage(`apply-service: ${words}`);
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    show(status, "$(error) apply", words);
    void vscode.window.showErrorMessage(`apply-service: ${words}`);
  }
}
