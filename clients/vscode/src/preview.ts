/** A result beside the file, to be accepted or discarded. */

import * as vscode from "vscode";

const SCHEME = "apply-service";
const ACCEPT = "Accept";
const DISCARD = "Discard";

/** One preview at a time; a new one discards the one before. */
export class Previews implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #texts = new Map<string, string>();
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  #decide: ((isAccepted: boolean) => void) | null = null;
  #count = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? "";
  }

  /** Show what would become of a document, and wait for the decision. */
  async show(document: vscode.TextDocument, merged: string, summary: string): Promise<boolean> {
    this.decide(false);
    this.#count += 1;
    const uri = vscode.Uri.from({
      scheme: SCHEME,
      path: document.uri.path,
      query: String(this.#count),
    });
    this.#texts.set(uri.toString(), merged);
    const decision = new Promise<boolean>((resolve) => (this.#decide = resolve));
    await this.#mark(true);
    const name = vscode.workspace.asRelativePath(document.uri);
    await vscode.commands.executeCommand("vscode.diff", document.uri, uri, `${name}: ${summary}`);
    void vscode.window
      .showInformationMessage(`${name}: ${summary}`, ACCEPT, DISCARD)
      .then((answer) => {
        // A message that fades away decides nothing; the buttons of the editor are left.
        if (answer !== undefined && this.#texts.has(uri.toString())) {
          this.decide(answer === ACCEPT);
        }
      });
    const isAccepted = await decision;
    this.#texts.delete(uri.toString());
    await this.#mark(this.#decide !== null);
    await this.#close(uri);
    return isAccepted;
  }

  /** Accept or discard what is shown. */
  decide(isAccepted: boolean): void {
    const decide = this.#decide;
    this.#decide = null;
    decide?.(isAccepted);
  }

  dispose(): void {
    this.decide(false);
    this.#registration.dispose();
  }

  async #mark(isPreviewing: boolean): Promise<void> {
    const name = "applyService.isPreviewing";
    await vscode.commands.executeCommand("setContext", name, isPreviewing);
  }

  async #close(uri: vscode.Uri): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const shown = tabs.filter(
      ({ input }) =>
        input instanceof vscode.TabInputTextDiff && input.modified.toString() === uri.toString(),
    );
    await vscode.window.tabGroups.close(shown);
  }
}
