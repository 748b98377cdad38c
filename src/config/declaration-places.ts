/**
 * The line of a mistake in a configuration file: the member that the sentence names is looked up in the source, also in files from which the
 * configuration imports a declaration. Read only where there are mistakes. A place that is not found is no mistake of its own: a
 * declaration may be computed.
 */
import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import process from 'node:process';
import type { Expression, Parser, Program, Property, SpreadElement } from 'acorn';

type Module = { readonly file: string; readonly program: Program };
export type Place = { readonly file: string; readonly line: number };
type Parse = (file: string) => Module | undefined;
type AnyNode = Expression | Property | SpreadElement;

/** `collection tickets: indexes names ...`, and the other kinds of named declarations. A wrong name may have any characters. */
const namedSentence = /^(collection|sender|subscriber|job|action|event type) (.+?): (.*)$/s;
/** The place of a mistake in a function (named-in-functions.ts). */
const placedSentence = /^\S+\.[cm]?[jt]s:\d+: /;
/** `access.read`, `keep[0]`, `"shema"`, at the beginning of a predicate. */
const memberPath = /^"?([A-Za-z_$][\w$-]*(?:\.[\w$-]+|\[\d+\])*)"?/;
const quotedName = /"([^"]+)"/;
const memberSigns = /[.[\]]+/;
const typescriptFile = /\.[cm]?ts$/;
export const scriptFile = /\.[cm]?[jt]s$/;
const wrappersMax = 20;

/** Each mistake with the file and, where it is found, the line: `comity.config.ts:12: collection ...`. */
export async function placeMistakes(path: string, mistakes: readonly string[]): Promise<readonly string[]> {
  const parse = await createParse();
  const main = parse(resolve(path));
  return mistakes.map((mistake) => {
    if (placedSentence.test(mistake)) return mistake;
    const place = main === undefined ? undefined : placeOf(parse, main, mistake);
    if (place === undefined) return `${path}: ${mistake}`;
    const file = place.file === resolve(path) ? path : relative(process.cwd(), place.file);
    return `${file}:${place.line}: ${mistake}`;
  });
}

/** Each file is parsed once. The parser is loaded here, where something is wrong already. */
async function createParse(): Promise<Parse> {
  const { parse } = await import('acorn');
  const parsed = new Map<string, Module | undefined>();
  return (file) => {
    if (!parsed.has(file)) parsed.set(file, tryParse(file));
    return parsed.get(file);
  };

  function tryParse(file: string): Module | undefined {
    try {
      return { file, program: programOf(parse, file) };
    } catch {
      // It was imported a moment ago: it is being changed, or is of a kind that only a loader understands.
      return undefined;
    }
  }
}

export function programOf(parse: typeof Parser.parse, file: string): Program {
  const text = readFileSync(file, 'utf8');
  // Types become spaces, so that lines and columns stay.
  const plain = typescriptFile.test(file) ? stripTypes(text) : text;
  return parse(plain, { ecmaVersion: 'latest', sourceType: 'module', locations: true });
}

/** The place of an error of syntax, for which V8 gives none: in the file, or in those that it imports by their paths. */
export async function findSyntaxMistake(path: string): Promise<Place | undefined> {
  const { parse } = await import('acorn');
  const files = new Set([resolve(path)]);
  // A set hands out what is added to it while it is walked.
  for (const file of files) {
    try {
      for (const statement of programOf(parse, file).body) {
        if (!('source' in statement) || statement.source == null) continue;
        const from = String(statement.source.value);
        const imported = resolve(dirname(file), from);
        if (from.startsWith('.') && scriptFile.test(from) && existsSync(imported)) files.add(imported);
      }
    } catch (error) {
      const { loc } = error as { readonly loc?: { readonly line: number } };
      if (loc !== undefined) return { file, line: loc.line };
    }
  }
  return undefined;
}

/** Without the warning that the function is experimental, which would stand among the mistakes: a change of it costs a line number. */
function stripTypes(text: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(text);
  } finally {
    process.emitWarning = emitWarning;
  }
}

function placeOf(parse: Parse, main: Module, mistake: string): Place | undefined {
  const path = pathOf(mistake);
  const exported = exportOf(main, 'default');
  if (exported === undefined || path.length === 0) return undefined;
  const found = find(parse, main, exported, path);
  if (found === undefined) return undefined;
  // What the sentence quotes first is what is wrong; later it suggests names.
  const [, quoted] = quotedName.exec(mistake) ?? [];
  const [inner] = quoted === undefined ? [] : textWithin(found.node, quoted);
  return { file: found.module.file, line: inner ?? lineOf(found.node) };
}

/** The members that lead to what the sentence names. */
function pathOf(mistake: string): readonly string[] {
  const [, kind, name, predicate = ''] = namedSentence.exec(mistake) ?? [];
  if (kind === undefined || name === undefined) return membersOf(mistake);
  const folder = kind === 'event type' ? 'eventTypes' : `${kind}s`;
  return [folder, name, ...membersOf(predicate)];
}

function membersOf(predicate: string): readonly string[] {
  const [, path = ''] = memberPath.exec(predicate) ?? [];
  return path.split(memberSigns).filter((member) => member !== '');
}

type Found = { readonly module: Module; readonly node: AnyNode };

/** The member at the path, or the nearest that stands in the source; undefined if the first does not. */
function find(parse: Parse, module: Module, node: Expression, path: readonly string[]): Found | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return undefined;
  const literal = literalOf(parse, module, node);
  if (literal === undefined) return undefined;
  const { node: object } = literal;
  if (object.type === 'ArrayExpression') {
    const element = object.elements[Number(name)];
    if (element == null || element.type === 'SpreadElement') return undefined;
    return find(parse, literal.module, element, rest) ?? { module: literal.module, node: element };
  }
  if (object.type !== 'ObjectExpression') return undefined;
  for (const property of object.properties) {
    if (property.type === 'SpreadElement') {
      const spread = find(parse, literal.module, property.argument, path);
      if (spread !== undefined) return spread;
    } else if (keyOf(property) === name) {
      return find(parse, literal.module, property.value, rest) ?? { module: literal.module, node: property };
    }
  }
  return undefined;
}

/** The object or list that an expression stands for: through names, imports and calls such as `collection({ ... })`. */
function literalOf(
  parse: Parse,
  module: Module,
  node: Expression,
): { module: Module; node: Expression } | undefined {
  let at = { module, node };
  for (let steps = 0; steps < wrappersMax; steps += 1) {
    if (at.node.type === 'CallExpression') {
      const [argument] = at.node.arguments;
      if (argument === undefined || argument.type === 'SpreadElement') return undefined;
      at = { ...at, node: argument };
    } else if (at.node.type === 'Identifier') {
      const declared = declarationOf(parse, at.module, at.node.name);
      if (declared === undefined) return undefined;
      at = declared;
    } else return at;
  }
  return undefined;
}

function declarationOf(
  parse: Parse,
  module: Module,
  name: string,
): { module: Module; node: Expression } | undefined {
  for (const statement of module.program.body) {
    if (statement.type === 'ImportDeclaration') {
      for (const specifier of statement.specifiers) {
        if (specifier.local.name !== name) continue;
        const from = resolve(dirname(module.file), String(statement.source.value));
        const other = existsSync(from) ? parse(from) : undefined;
        const imported = specifier.type === 'ImportSpecifier' ? nameOf(specifier.imported) : 'default';
        const node = other === undefined ? undefined : exportOf(other, imported);
        return other === undefined || node === undefined ? undefined : { module: other, node };
      }
      continue;
    }
    const node = variableOf(statement, name);
    if (node !== undefined) return { module, node };
  }
  return undefined;
}

type Statement = Program['body'][number];

/** The first value of a variable that a statement declares. */
function variableOf(statement: Statement, name: string): Expression | undefined {
  const declaration =
    statement.type === 'ExportNamedDeclaration' ? (statement.declaration ?? undefined) : statement;
  if (declaration?.type !== 'VariableDeclaration') return undefined;
  const declared = declaration.declarations.find(({ id }) => id.type === 'Identifier' && id.name === name);
  return declared?.init ?? undefined;
}

function exportOf({ program }: Module, name: string): Expression | undefined {
  for (const statement of program.body) {
    if (statement.type === 'ExportDefaultDeclaration' && name === 'default') {
      const { declaration } = statement;
      const isExpression =
        declaration.type !== 'FunctionDeclaration' && declaration.type !== 'ClassDeclaration';
      return isExpression ? declaration : undefined;
    }
    const node = variableOf(statement, name);
    if (node !== undefined) return node;
  }
  return undefined;
}

function keyOf({ key, computed }: Property): string | undefined {
  if (computed) return undefined;
  return key.type === 'Identifier' ? key.name : key.type === 'Literal' ? String(key.value) : undefined;
}

function nameOf(name: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return name.name ?? String(name.value);
}

/** The lines on which a text or a key with this name stands within the node. */
function textWithin(node: AnyNode, name: string): readonly number[] {
  const lines: number[] = [];
  const waiting: unknown[] = [node];
  for (let each = waiting.shift(); each !== undefined; each = waiting.shift()) {
    if (typeof each !== 'object' || each === null) continue;
    const { type, value, name: own } = each as { type?: string; value?: unknown; name?: unknown };
    const isNamed = (type === 'Literal' && value === name) || (type === 'Identifier' && own === name);
    if (isNamed) lines.push(lineOf(each as AnyNode));
    waiting.push(...Object.values(each));
  }
  return lines;
}

function lineOf(node: AnyNode): number {
  return node.loc?.start.line ?? 1;
}
