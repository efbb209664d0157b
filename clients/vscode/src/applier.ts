/** Applies one update to one document, with questions and preview. */

import * as vscode from "vscode";
import {
  type APIStatusError,
  ApplyClient,
  type ApplyResult,
  type Choice,
  type Edit,
  EditRejectedError,
  type Finding,
  isSure,
  UnknownChoiceError,
} from "apply-client";

import { changeBetween } from "./change.js";
import type { Previews } from "./preview.js";

type Show = (text: string, tooltip: string) => void;

interface ChoiceItem extends vscode.QuickPickItem {
  id: string;
}

export class Applier {
  /** What documents looked like when their findings were shown. */
  readonly #shown = new Map<string, string>();

  constructor(
    readonly client: () => Promise<ApplyClient>,
    readonly previews: Previews,
    readonly findings: vscode.DiagnosticCollection,
    readonly show: Show,
  ) {}

  /** Ask the service, then the person, and change the document; whether it was changed. */
  async apply(document: vscode.TextDocument, update: string): Promise<boolean> {
    const original = document.getText();
    const edit = { original, update, path: vscode.workspace.asRelativePath(document.uri) };
    try {
      const result = await this.#ask(edit);
      if (result === null) {
        return false;
      }
      this.#tell(document, original, result.findings);
      if (result.merged === original) {
        void vscode.window.showInformationMessage(`apply-service: ${summaryOf(result)}`);
        return false;
      }
      return await this.#take(document, original, result);
    } catch (error) {
      this.#fail(document, original, error);
      return false;
    }
  }

  /** Take findings back once their document is another one. */
  forget(document: vscode.TextDocument): void {
    const shown = this.#shown.get(document.uri.toString());
    if (shown !== undefined && shown !== document.getText()) {
      this.#shown.delete(document.uri.toString());
      this.findings.delete(document.uri);
    }
  }

  /** The result, by the choice that was meant; null if the person chose none. */
  async #ask(edit: Edit<string>): Promise<ApplyResult<string> | null> {
    const client = await this.client();
    const options = {
      location: vscode.ProgressLocation.Notification,
      title: `Applying an update to ${edit.path ?? "the file"}`,
      cancellable: true,
    };
    const send = (resolve: string | null): Thenable<ApplyResult<string> | readonly Choice[]> =>
      vscode.window.withProgress(options, async (_progress, token) => {
        const leaving = new AbortController();
        token.onCancellationRequested(() => leaving.abort());
        try {
          const asked = resolve === null ? edit : { ...edit, resolve };
          return await client.apply(asked, { signal: leaving.signal });
        } catch (error) {
          const { choices = [] } = error as Partial<APIStatusError>;
          if (choices.length > 0) {
            return choices;
          }
          throw error;
        }
      });
    let answer = await send(null);
    for (;;) {
      const choices = "merged" in answer ? answer.choices : answer;
      if (choices.length === 0 && "merged" in answer) {
        return answer;
      }
      const chosen = await choose(choices);
      if (chosen === undefined) {
        return null;
      }
      answer = await send(chosen);
    }
  }

  async #take(
    document: vscode.TextDocument,
    original: string,
    result: ApplyResult<string>,
  ): Promise<boolean> {
    const preview = vscode.workspace.getConfiguration("applyService").get<string>("preview");
    const isShown = preview === "always" || !isSure(result);
    if (isShown && !(await this.previews.show(document, result.merged, summaryOf(result)))) {
      return false;
    }
    if (document.getText() !== original) {
      throw new Error("the document has changed meanwhile; apply the update again");
    }
    const { start, end, text } = changeBetween(original, result.merged);
    const range = new vscode.Range(document.positionAt(start), document.positionAt(end));
    const change = new vscode.WorkspaceEdit();
    change.replace(document.uri, range, text);
    if (!(await vscode.workspace.applyEdit(change))) {
      throw new Error("the editor did not take the edit; is the file read-only?");
    }
    this.#tell(document, result.merged, result.findings);
    await vscode.window.showTextDocument(document);
    this.show("$(check-all) apply", `${vscode.workspace.asRelativePath(document.uri)}: ${summaryOf(result)}`);
    return true;
  }

  #fail(document: vscode.TextDocument, original: string, error: unknown): void {
    if (error instanceof EditRejectedError || error instanceof UnknownChoiceError) {
      this.#tell(document, original, error.problem.findings ?? []);
    }
    if (error instanceof Error && error.name === "AbortError") {
      return;
    }
    const words = error instanceof Error ? error.message : String(error);
    this.show("$(error) apply", words);
    void vscode.window.showErrorMessage(`apply-service: ${words}`);
  }

  #tell(document: vscode.TextDocument, text: string, findings: readonly Finding[]): void {
    this.#shown.set(document.uri.toString(), text);
    this.findings.set(
      document.uri,
      findings.map((finding) => {
        const line = Math.min(Math.max((finding.line ?? 1) - 1, 0), document.lineCount - 1);
        const severity =
          finding.severity === "error"
            ? vscode.DiagnosticSeverity.Error
            : vscode.DiagnosticSeverity.Warning;
        const message = `${finding.message}\n${finding.hint}`;
        const found = new vscode.Diagnostic(document.lineAt(line).range, message, severity);
        found.code = finding.code;
        found.source = "apply-service";
        return found;
      }),
    );
  }
}

async function choose(choices: readonly Choice[]): Promise<string | undefined> {
  const items = choices.map(
    ({ id, where, probability, reason, diff }): ChoiceItem => ({
      id,
      label: where.symbol ?? `line ${where.start_line}`,
      description: `${Math.round(100 * probability)} %`,
      detail: `${reason} ${diff.split("\n").filter((line) => /^[+-](?![+-]{2} )/.test(line)).slice(0, 2).join(" ")}`,
    }),
  );
  const title = "Which result is meant?";
  return (await vscode.window.showQuickPick(items, { title, matchOnDetail: true }))?.id;
}

function summaryOf({ status, confidence }: ApplyResult<string>): string {
  const words = status.replace("_", " ");
  return confidence == null ? words : `${words}, ${Math.round(100 * confidence)} % certain`;
}
