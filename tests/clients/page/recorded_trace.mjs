/** An answer with a trace, in the form that the API gives it. */

const forced = (text) => ({ text, origin: "forced" });
const drafted = (text) => ({ text, origin: "drafted" });
const written = (text) => ({ text, origin: "written" });

export const TRACE = [
  {
    region: 0,
    steps: [
      { at_s: 0.0, drafter: null, tokens: [forced("  "), forced("total")], rejected: [] },
      {
        at_s: 0.0132,
        drafter: "snippet",
        tokens: [drafted("(discount"), drafted(" = 0)"), written(" {\n")],
        rejected: [": number", " {"],
      },
      { at_s: 0.0251, drafter: null, tokens: [written("    let")], rejected: [] },
      {
        at_s: 0.0377,
        drafter: "original",
        tokens: [drafted(" sum"), drafted(" = 0;\n")],
        rejected: [],
      },
    ],
  },
];

/** A service's description that knows the trace. */
export function withTrace(description) {
  const { include } = description.components.schemas.ApplyBody.properties;
  const { items } = include;
  const known = items.enum ?? [items.const];
  delete items.const;
  items.enum = [...new Set([...known, "trace"])];
  return description;
}
