/** Calls of the service's own API, with the key if there is one. */

import type { ApplyBody, Choice, Finding, WireResult } from "apply-client";

/** An error in the service's own words. */
export interface Problem {
  status: number;
  title: string;
  detail: string;
  code: string;
  remedy?: string;
  findings?: Finding[];
  choices?: Choice[];
}

/** An answer that is no success. */
export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

/** The service that served the page. */
export class Service {
  constructor(
    readonly address: string,
    private readonly readKey: () => string | null,
  ) {}

  async apply(edit: ApplyBody): Promise<WireResult> {
    const headers = { "Content-Type": "application/json" };
    const answer = await this.#ask("v1/apply", {
      method: "POST",
      headers,
      body: JSON.stringify(edit),
    });
    return (await answer.json()) as WireResult;
  }

  async metrics(): Promise<string> {
    return (await this.#ask("metrics")).text();
  }

  async model(): Promise<string | null> {
    const listed = (await (await this.#ask("v1/models")).json()) as { data: { id: string }[] };
    return listed.data[0]?.id ?? null;
  }

  /** The OpenAPI document. */
  async description(): Promise<object> {
    return (await (await this.#ask("schema/openapi.json")).json()) as object;
  }

  async #ask(path: string, options: RequestInit = {}): Promise<Response> {
    const headers = new Headers(options.headers);
    const key = this.readKey();
    if (key !== null) {
      headers.set("Authorization", `Bearer ${key}`);
    }
    let answer: Response;
    try {
      answer = await fetch(this.address + path, { ...options, headers, credentials: "omit" });
    } catch {
      throw new ProblemError({
        status: 0,
        title: "The server cannot be reached",
        detail: `${this.address} does not answer`,
        code: "unreachable",
        remedy: "look whether it still runs",
      });
    }
    if (!answer.ok) {
      throw new ProblemError(await problemOf(answer));
    }
    return answer;
  }
}

async function problemOf(answer: Response): Promise<Problem> {
  const text = await answer.text();
  try {
    const said = JSON.parse(text) as Partial<Problem>;
    if (typeof said.detail === "string") {
      return {
        title: `Error ${answer.status}`,
        code: "unknown",
        ...said,
        detail: said.detail,
        status: answer.status,
      };
    }
  } catch {
    // Something between the page and the service answered.
  }
  return {
    status: answer.status,
    title: `Error ${answer.status}`,
    detail: text.slice(0, 300) || answer.statusText || "an answer without words",
    code: "unknown",
  };
}
