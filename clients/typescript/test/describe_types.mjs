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
    return literal.kind === ts.SyntaxKind.NullKeyword ? "null" : { const: literal.text };
  }
  if (ts.isUnionTypeNode(type)) {
    return { any: type.types.map(describe) };
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
  return { object: Object.fromEntries(members) };
}

const names = [...declarations.keys()];
console.log(JSON.stringify(Object.fromEntries(names.map((name) => [name, describeNamed(name)]))));
