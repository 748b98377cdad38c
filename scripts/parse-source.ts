/**
 * Reads from one source file what the checks need: its imports, the length of its functions, its comments.
 * One parse by oxc-parser serves them all. It resolves nothing and reads no other file.
 */

import type { Argument, CallExpression, Expression, Node, PropertyKey } from 'oxc-parser';
import { parseSync, Visitor } from 'oxc-parser';

export type ImportEdge = {
  readonly specifier: string;
  readonly line: number;
  /** `url` is `new URL('./x.ts', import.meta.url)`, which is how a worker thread is named. */
  readonly kind: 'static' | 'dynamic' | 'type' | 'url';
};

export type FunctionSpan = {
  /** The name that it is declared, assigned or passed under, such as `parse`, `Pool.take` or `test('...')`. */
  readonly name: string;
  readonly line: number;
  /** From the line of its first word to the line of its closing brace. */
  readonly lines: number;
  /** True for the body of `describe` or `suite`, which only groups tests. */
  readonly groupsTests: boolean;
};

export type CommentSpan = { readonly text: string; readonly line: number; readonly endLine: number };

export type ParsedSource = {
  readonly imports: readonly ImportEdge[];
  readonly functions: readonly FunctionSpan[];
  readonly comments: readonly CommentSpan[];
  readonly errors: readonly string[];
};

/** By path and text: five checks ask for each of 2,000 files, which cost 12 s of processor time when each parsed them for itself. */
const parsedSources = new Map<string, ParsedSource>();

/** Parses one file, once a process; `path` gives the language. Faults of syntax come back in `errors`. */
export function parseSource(path: string, text: string): ParsedSource {
  const key = `${path}\n${text}`;
  const parsed = parsedSources.get(key) ?? parse(path, text);
  parsedSources.set(key, parsed);
  return parsed;
}

function parse(path: string, text: string): ParsedSource {
  const parsed = parseSync(path, text);
  const lineAt = lineCounter(text);
  const found = { imports: [] as ImportEdge[], functions: [] as FunctionSpan[] };
  collectStaticImports(parsed.module, lineAt, found.imports);
  collectFromTree(parsed.program, lineAt, found);
  return {
    ...found,
    comments: parsed.comments.map(({ value, start, end }) => ({
      text: value,
      line: lineAt(start),
      endLine: lineAt(end),
    })),
    errors: parsed.errors.map((error) => error.message),
  };
}

type LineAt = (offset: number) => number;
type Found = { readonly imports: ImportEdge[]; readonly functions: FunctionSpan[] };

function collectStaticImports(
  module: ReturnType<typeof parseSync>['module'],
  lineAt: LineAt,
  imports: ImportEdge[],
): void {
  for (const { moduleRequest, start } of module.staticImports) {
    imports.push({ specifier: moduleRequest.value, line: lineAt(start), kind: 'static' });
  }
  for (const { entries, start } of module.staticExports) {
    const request = entries.find((entry) => entry.moduleRequest !== null)?.moduleRequest;
    if (request) imports.push({ specifier: request.value, line: lineAt(start), kind: 'static' });
  }
}

function collectFromTree(program: Parameters<Visitor['visit']>[0], lineAt: LineAt, found: Found): void {
  const names = new Map<Node, string>();
  const classes: string[] = [];
  const add = (node: Node) => {
    const line = lineAt(node.start);
    const name = names.get(node) ?? 'anonymous';
    const groupsTests = /^(describe|describeOnEachStore|suite)\b/.test(name);
    found.functions.push({ name, line, lines: lineAt(node.end) - line + 1, groupsTests });
  };
  const name = (node: Node | null | undefined, text: string) => {
    if (node) names.set(node, text);
  };
  const member = (key: PropertyKey) => [...classes.slice(-1), keyText(key)].join('.');
  const edge = (kind: ImportEdge['kind'], source: Expression | Argument, node: Node) => {
    const specifier = stringOf(source);
    if (specifier !== undefined) found.imports.push({ specifier, line: lineAt(node.start), kind });
  };
  new Visitor({
    ClassDeclaration: (node) => void classes.push(node.id?.name ?? 'class'),
    'ClassDeclaration:exit': () => void classes.pop(),
    ClassExpression: (node) => void classes.push(node.id?.name ?? 'class'),
    'ClassExpression:exit': () => void classes.pop(),
    VariableDeclarator: (node) => name(node.init, node.id.type === 'Identifier' ? node.id.name : 'pattern'),
    MethodDefinition: (node) => name(node.value, member(node.key)),
    PropertyDefinition: (node) => name(node.value, member(node.key)),
    Property: (node) => name(node.value, keyText(node.key)),
    CallExpression: (node) => {
      for (const argument of node.arguments) name(argument, calleeText(node));
    },
    FunctionDeclaration: (node) => {
      name(node, node.id?.name ?? 'default');
      add(node);
    },
    FunctionExpression: add,
    ArrowFunctionExpression: add,
    ImportExpression: (node) => edge('dynamic', node.source, node),
    TSImportType: (node) => edge('type', node.source, node),
    NewExpression: (node) => {
      const [target, origin] = node.arguments;
      const isUrl = node.callee.type === 'Identifier' && node.callee.name === 'URL';
      if (isUrl && target && origin?.type === 'MemberExpression' && origin.object.type === 'MetaProperty') {
        edge('url', target, node);
      }
    },
  }).visit(program);
}

function stringOf(node: Expression | Argument): string | undefined {
  return node.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;
}

function keyText(key: PropertyKey): string {
  if (key.type === 'Identifier') return key.name;
  if (key.type === 'PrivateIdentifier') return `#${key.name}`;
  return 'computed';
}

/** `test('refuses two Host fields')` for a test, `setTimeout()` for any other call. */
function calleeText(node: CallExpression): string {
  const { callee } = node;
  const object = callee.type === 'MemberExpression' ? callee.object : callee;
  const called = object.type === 'Identifier' ? object.name : 'call';
  const title = node.arguments[0] === undefined ? undefined : stringOf(node.arguments[0]);
  return title === undefined ? `${called}()` : `${called}('${title}')`;
}

function lineCounter(text: string): LineAt {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
