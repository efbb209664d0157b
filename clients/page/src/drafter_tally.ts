/** What the drafts of all edits of this page came to, by what they were copied from. */

import type { ReferenceUsage } from "apply-client";

export class DrafterTally {
  readonly #counts = new Map<string, ReferenceUsage>();

  add(usage: Readonly<Record<string, ReferenceUsage>>): void {
    for (const [drafter, { drafted, accepted }] of Object.entries(usage)) {
      const before = this.#counts.get(drafter) ?? { drafted: 0, accepted: 0 };
      this.#counts.set(drafter, {
        drafted: before.drafted + drafted,
        accepted: before.accepted + accepted,
      });
    }
  }

  /** The drafters that have drafted, the busiest first. */
  rows(): [drafter: string, usage: ReferenceUsage][] {
    const rows = [...this.#counts].filter(([, { drafted }]) => drafted > 0);
    return rows.sort(([, one], [, other]) => other.drafted - one.drafted);
  }
}
