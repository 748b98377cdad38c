/**
 * Names that stand as literals in an application's functions, where nothing but the run of the function could find them wrong: templates of
 * `mail.send`, types of `emit`, codes of `refuse`. Read from the source of the configuration and of the files that it imports by their paths;
 * a name that is computed is not known.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import type { Node } from 'acorn';
import { programOf, scriptFile } from './declaration-places.ts';

/** @param name as it is written @param place `comity.config.ts:12` */
type NamedThere = { readonly name: string; readonly place: string };

export type NamedInFunctions = {
  readonly templates: readonly NamedThere[];
  readonly emitted: readonly NamedThere[];
  readonly codes: ReadonlySet<string>;
};

/** Files without words of the calls are not parsed, which takes 40 ms: their imports are found in their text. */
const checkedWords = /\bemit\s*\(|\btemplate\b/;
const allWords = /\bemit\s*\(|\btemplate\b|\brefuse\b/;
const importedPath = /\b(?:from|import)\s*\(?\s*(['"])(\.{1,2}\/[^'"\n]+)\1/g;
/** Beyond them, names are not looked for. */
const filesMax = 1000;

/**
 * @param configuration its file; a path as the user wrote it
 * @param wanted `checked`: what a start judges, without the codes of files that have nothing else
 */
export async function findNamesInFunctions(
  configuration: string | URL,
  wanted: 'checked' | 'all',
): Promise<NamedInFunctions> {
  const path = typeof configuration === 'string' ? configuration : fileURLToPath(configuration);
  const words = wanted === 'all' ? allWords : checkedWords;
  const found = { templates: [] as NamedThere[], emitted: [] as NamedThere[], codes: new Set<string>() };
  const files = new Set([resolve(path)]);
  // A set hands out what is added to it while it is walked.
  for (const file of files) {
    try {
      const text = readFileSync(file, 'utf8');
      for (const [, , from = ''] of text.matchAll(importedPath)) {
        const imported = resolve(dirname(file), from);
        if (files.size < filesMax && scriptFile.test(from) && existsSync(imported)) files.add(imported);
      }
      if (!words.test(text)) continue;
      const { parse } = await import('acorn');
      const shown = file === resolve(path) ? path : relative(process.cwd(), file);
      new CallReader(programOf(parse, file), shown, found).read();
    } catch {
      // It was imported a moment ago: it is being changed, or is of a kind that only a loader understands.
    }
  }
  return found;
}

type Found = {
  readonly templates: NamedThere[];
  readonly emitted: NamedThere[];
  readonly codes: Set<string>;
};

/** A node of the syntax tree, of any kind. */
type Syntax = Node & { readonly [member: string]: unknown };

class CallReader {
  readonly #program: Syntax;
  readonly #shown: string;
  readonly #found: Found;
  /** What constants are initialized with, by name; undefined for names that are declared twice. */
  readonly #constants = new Map<string, Syntax | undefined>();

  constructor(program: Node, shown: string, found: Found) {
    this.#program = program as Syntax;
    this.#shown = shown;
    this.#found = found;
  }

  read(): void {
    eachNode(this.#program, (node) => {
      if (node.type !== 'VariableDeclaration' || node.kind !== 'const') return;
      for (const { id, init } of node.declarations as readonly Syntax[]) {
        if (!isSyntax(id) || !isSyntax(init) || typeof id.name !== 'string') continue;
        this.#constants.set(id.name, this.#constants.has(id.name) ? undefined : init);
      }
    });
    eachNode(this.#program, (node) => {
      if (node.type === 'CallExpression') this.#readCall(node);
    });
  }

  #readCall({ callee, arguments: given }: Syntax): void {
    const [first] = given as readonly Syntax[];
    if (first === undefined || !isSyntax(callee)) return;
    const name = nameOf(callee);
    if (name === 'send' && isSyntax(callee.object) && nameOf(callee.object) === 'mail')
      this.#found.templates.push(...this.#namesOf(memberOf(first, 'template')));
    // Other objects have an `emit` too.
    if (name === 'emit' && callee.type === 'Identifier') this.#found.emitted.push(...this.#namesOf(first));
    if (name === 'refuse')
      for (const { name: code } of this.#namesOf(memberOf(first, 'code'))) this.#found.codes.add(code);
  }

  /** The texts that an expression can be, as far as they stand in the file. */
  #namesOf(node: Syntax | undefined): readonly NamedThere[] {
    switch (node?.type) {
      case 'Literal': {
        const line = node.loc?.start.line ?? 1;
        return typeof node.value === 'string' ? [{ name: node.value, place: `${this.#shown}:${line}` }] : [];
      }
      case 'ConditionalExpression':
        return [node.consequent, node.alternate].flatMap((part) => this.#namesOf(part as Syntax));
      case 'Identifier': {
        const constant = this.#constants.get(String(node.name));
        return constant === undefined || constant.type === 'Identifier' ? [] : this.#namesOf(constant);
      }
      default:
        return [];
    }
  }
}

/** The name of an identifier, or of the member that an expression reads. */
function nameOf({ type, name, property, computed }: Syntax): unknown {
  if (type === 'Identifier') return name;
  return type === 'MemberExpression' && computed !== true && isSyntax(property) ? property.name : undefined;
}

function memberOf({ type, properties }: Syntax, name: string): Syntax | undefined {
  if (type !== 'ObjectExpression') return undefined;
  for (const { type: kind, key, value, computed } of properties as readonly Syntax[]) {
    const isNamed = isSyntax(key) && (key.name === name || key.value === name);
    if (kind === 'Property' && computed !== true && isNamed && isSyntax(value)) return value;
  }
  return undefined;
}

function isSyntax(value: unknown): value is Syntax {
  return typeof value === 'object' && value !== null && 'type' in value;
}

/** Visits the node and every node within it. */
function eachNode(root: Syntax, visit: (node: Syntax) => void): void {
  const left: Syntax[] = [root];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    visit(node);
    for (const part of Object.values(node).flat()) if (isSyntax(part)) left.push(part);
  }
}
