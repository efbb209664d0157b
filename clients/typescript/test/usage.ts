/** What a caller may write and what not; compiled, never run. */

import {
  ApplyClient,
  EditRejectedError,
  isSure,
  type ApplyResult,
  type Edit,
  type EditOutcome,
  type Finding,
  type StreamEvent,
} from "apply-client";

const client = new ApplyClient({ baseUrl: "http://127.0.0.1:1", apiKey: "k", timeoutMs: 1000 });

export async function resultsHaveTheKindOfTheOriginal(bytes: Uint8Array): Promise<void> {
  const update = "";
  const text: string = (await client.apply({ original: "", update })).merged;
  const sameBytes: Uint8Array = (await client.apply({ original: bytes, update })).merged;
  // @ts-expect-error text does not become bytes
  const wrong: Uint8Array = (await client.apply({ original: "", update })).merged;
  const edit: Edit = { original: "", update };
  const either: string | Uint8Array = (await client.apply(edit)).merged;
  void [text, sameBytes, wrong, either];
}

export async function eventsAreToldApartByType(edit: Edit<string>): Promise<string> {
  let text = "";
  for await (const event of client.applyStream(edit, { signal: AbortSignal.timeout(1) })) {
    if (event.type === "token") {
      text += event.text;
    } else if (event.type === "result") {
      text = event.result.merged;
    }
    // @ts-expect-error only a region's beginning has lines
    void event.start_line;
  }
  return text;
}

export async function outcomesHaveAResultOrAnError(edits: Edit<string>[]): Promise<void> {
  for await (const outcome of client.applyMany(edits, { maxConcurrency: 2 })) {
    if (outcome.error === null) {
      const result: ApplyResult<string> = outcome.result;
      void isSure(result);
    } else if (outcome.error instanceof EditRejectedError) {
      const findings: readonly Finding[] = outcome.error.findings;
      void findings;
    }
    // @ts-expect-error there may be no result
    void outcome.result.merged;
  }
}

export async function filesHaveAResultOrAProblem(bytes: Uint8Array): Promise<void> {
  const files = [{ path: "a.py", original: bytes }];
  const answer = await client.applyFiles({ files, update: "*** Begin Patch", atomic: true });
  for (const { action, result, problem } of answer.files) {
    const merged: string | Uint8Array | undefined = result?.merged;
    void [action === "delete", merged, problem?.choices];
  }
  // @ts-expect-error each file has a path
  void client.applyFiles({ files: [{ original: "", update: "" }] });
}

export function optionsAreThoseOfTheService(): unknown[] {
  const edit: Edit<string> = {
    original: "",
    update: "",
    use_model: "never",
    sampling: { temperature: 0.5, seed: 1 },
    include: ["decisions"],
  };
  // @ts-expect-error no such option
  const unheard: Edit<string> = { original: "", update: "", unheard_of: 1 };
  // @ts-expect-error no such value
  const wrong: Edit<string> = { original: "", update: "", use_model: "sometimes" };
  // @ts-expect-error an edit is streamed by `applyStream`
  const streamed: Edit<string> = { original: "", update: "", stream: true };
  return [edit, unheard, wrong, streamed];
}

export type Exported = [StreamEvent, EditOutcome];
