/** Everything that a user can name has hover documentation: the package's declarations, as an editor reads them. */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const entry = join(root, "dist/index.d.ts");

/** Exports of the package, and public members of its classes and interfaces, without a comment. */
function undocumented(file) {
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.Node16,
    moduleResolution: ts.ModuleResolutionKind.Node16,
    target: ts.ScriptTarget.ES2022,
    types: ["node"],
  });
  const checker = program.getTypeChecker();
  const isDocumented = (symbol) => symbol.getDocumentationComment(checker).length > 0;
  const found = { missing: [], seen: 0 };
  const visit = (symbol, path) => {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    found.seen += 1;
    if (target.flags & ts.SymbolFlags.Module) {
      for (const inner of checker.getExportsOfModule(target)) visit(inner, `${path}.${inner.name}`);
      return;
    }
    if (!isDocumented(target)) found.missing.push(path);
    if (!(target.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface))) return;
    for (const member of target.members?.values() ?? []) {
      const declaration = member.declarations?.[0];
      const isOwn = declaration?.getSourceFile().fileName.startsWith(join(root, "dist"));
      const isHidden =
        declaration &&
        ts.canHaveModifiers(declaration) &&
        ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected);
      // `__call` and the like are not names, and `#private` stands for all private members.
      const isNamed = !member.name.startsWith("__") && !member.name.startsWith("#");
      if (!isOwn || isHidden || !isNamed) continue;
      found.seen += 1;
      const inherited = ts.displayPartsToString(member.getDocumentationComment(checker));
      if (!inherited && !ts.isTypeParameterDeclaration(declaration))
        found.missing.push(`${path}.${member.name}`);
    }
  };
  const module = checker.getSymbolAtLocation(program.getSourceFile(file));
  for (const symbol of checker.getExportsOfModule(module)) visit(symbol, symbol.name);
  return found;
}

test("every export of the package and every public member of it has a comment", () => {
  const { missing, seen } = undocumented(entry);
  assert.ok(seen > 500, `${seen} names`);
  assert.equal(missing.join("\n"), "", "they have no comment");
});
