/**
 * Prints the types of wire.d.ts as JSON, for the test that compares them with the service's own.
 *
 * A type is the name of a simple one, {"const"}, {"array"}, {"map"}, {"any"} of several, or
 * {"object"} with members, where a name that ends with "?" may be missing.
 */

import { readFileSync } from "node:fs";

import ts from "typescript";

const PATH = new URL("../dist/wire.d.ts", import.meta.url);
const SIMPLE = {
  [ts.SyntaxKind.StringKeyword]: "string",
  [ts.SyntaxKind.NumberKeyword]: "number",
  [ts.SyntaxKind.BooleanKeyword]: "boolean",
  [ts.SyntaxKind.UnknownKeyword]: "unknown",
};

const source = ts.createSourceFile("wire.d.ts", readFileSync(PATH, "utf8"), ts.ScriptTarget.ES2022);
const declarations = new Map(
  source.statements
    .filter((one) => ts.isInterfaceDeclaration(one) || ts.isTypeAliasDeclaration(one))
    .map((one) => [one.name.text, one]),
);

function describe(type) {
  if (type.kind in SIMPLE) {
    return SIMPLE[type.kind];
  }
  if (ts.isLiteralTypeNode(type)) {
    const { literal } = type;
    if (literal.kind === ts.SyntaxKind.NullKeyword) {
      return "null";
    }
    return { const: literal.kind === ts.SyntaxKind.FalseKeyword ? false : literal.text };
  }
  if (ts.isUnionTypeNode(type)) {
    return { any: type.types.map(describe) };
  }
  if (ts.isParenthesizedTypeNode(type)) {
    return describe(type.type);
  }
  if (ts.isArrayTypeNode(type)) {
    return { array: describe(type.elementType) };
  }
  if (ts.isTypeReferenceNode(type)) {
    const name = type.typeName.text;
    return name === "Record" ? { map: describe(type.typeArguments[1]) } : describeNamed(name);
  }
  throw new Error(`no description for ${type.getText(source)}`);
}

function describeNamed(name) {
  const declaration = declarations.get(name);
  if (ts.isTypeAliasDeclaration(declaration)) {
    return describe(declaration.type);
  }
  const members = declaration.members.map((member) => [
    member.name.text + (member.questionToken ? "?" : ""),
    describe(member.type),
  ]);
  return { object: { ...inherited(declaration), ...Object.fromEntries(members) } };
}

/** The members that an interface has by `extends Omit<Other, "some" | "names">`. */
function inherited(declaration) {
  const bases = (declaration.heritageClauses ?? []).flatMap((clause) => clause.types);
  return Object.assign(
    {},
    ...bases.map((base) => {
      const [other, names] = base.typeArguments;
      const left = new Set(describe(names).any.map((name) => name.const));
      const members = Object.entries(describe(other).object);
      return Object.fromEntries(members.filter(([name]) => !left.has(name.replace("?", ""))));
    }),
  );
}

const names = [...declarations.keys()];
console.log(JSON.stringify(Object.fromEntries(names.map((name) => [name, describeNamed(name)]))));
