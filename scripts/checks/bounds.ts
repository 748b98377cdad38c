/**
 * Nothing that lives longer than a request grows without a bound. Every map, set and cache that outlives the call that made it (a
 * field of a class, a member of an object that a function returns, or a variable that a later function uses) is listed in
 * src/memory/bounds.ts with its bound, or in scripts/bound-allowances.ts with the reason why it needs none. A name there that the code
 * no longer has fails as well.
 *
 * Not seen: arrays, and maps that are handed out and kept by the caller. Reviews have to find those.
 *
 * Usage: node scripts/checks/bounds.ts
 */
import type { Node } from 'oxc-parser';
import { parseSync, Visitor } from 'oxc-parser';
import { memoryBounds } from '../../src/memory/bounds.ts';
import { boundAllowances } from '../bound-allowances.ts';
import { listCode, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const registry = 'src/memory/bounds.ts';

const allowances = 'scripts/bound-allowances.ts';

/** What holds things by a key, or many of them. */
const containers: ReadonlySet<string> = new Set(['Map', 'Set', 'OctetCache']);

export type Container = { readonly file: string; readonly name: string; readonly line: number };

type Listed = { readonly file: string; readonly name: string };

/** @param listed what the registry and the allowances name; those of this repository unless given */
export function findBoundsProblems(
  root: string,
  listed: readonly Listed[] = [...Object.values(memoryBounds), ...boundAllowances],
): readonly Problem[] {
  const found = listCode(root, ['src']).flatMap((file) => findContainers(file, readText(root, file)));
  const known = new Set(listed.map(keyOf));
  const there = new Set(found.map(keyOf));
  const missing = found.filter((container) => !known.has(keyOf(container)));
  const gone = listed.filter((entry) => !there.has(keyOf(entry)));
  return [
    ...missing.map(({ file, name, line }) => ({
      file,
      line,
      message: `${name} outlives a request: list it in ${registry} with its bound, or in ${allowances} with the reason why it needs none`,
    })),
    ...gone.map(({ file, name }) => ({
      file,
      message: `${registry} or ${allowances} names ${name} here, which is not a map, set or cache that outlives a request`,
    })),
  ];
}

function keyOf({ file, name }: Listed): string {
  return `${file} ${name}`;
}

type Scope = { readonly node: Node; readonly isCallback: boolean; readonly made: Map<string, number> };

/** The maps, sets and caches of one file that outlive the call that made them. */
export function findContainers(file: string, text: string): readonly Container[] {
  const found = new Map<string, number>();
  const scopes: Scope[] = [{ node: {} as Node, isCallback: false, made: new Map() }];
  const callbacks = new Set<Node>();
  const lineAt = (offset: number): number => text.slice(0, offset).split('\n').length;
  const enter = (node: Node): void => {
    scopes.push({ node, isCallback: callbacks.has(node), made: new Map() });
  };
  const leave = (): void => void scopes.pop();
  const { program } = parseSync(file, text);
  new Visitor({
    CallExpression: ({ arguments: given }) => {
      for (const argument of given) callbacks.add(argument);
    },
    FunctionDeclaration: enter,
    'FunctionDeclaration:exit': leave,
    FunctionExpression: enter,
    'FunctionExpression:exit': leave,
    ArrowFunctionExpression: enter,
    'ArrowFunctionExpression:exit': leave,
    Property: ({ key, value, start }) => {
      // With arguments it is a table that is made once; without, something that grows.
      const grows = value.type === 'NewExpression' && value.arguments.length === 0;
      if (makesContainer(value) && (grows || isCache(value))) found.set(nameOf(key), lineAt(start));
    },
    ReturnStatement: ({ argument, start }) => {
      const maker = scopes.at(-1)?.node;
      const name =
        maker !== undefined && 'id' in maker && maker.id !== null ? nameOf(maker.id as Node) : 'returned';
      if (isCache(argument)) found.set(name, lineAt(start));
    },
    PropertyDefinition: ({ key, value, start }) => {
      if (makesContainer(value) && 'name' in key) found.set(nameOf(key), lineAt(start));
    },
    AssignmentExpression: ({ left, right, start }) => {
      if (left.type !== 'MemberExpression' || left.object.type !== 'ThisExpression') return;
      if (makesContainer(right) && 'name' in left.property) found.set(nameOf(left.property), lineAt(start));
    },
    VariableDeclarator: ({ id, init, start }) => {
      if (id.type === 'Identifier' && makesContainer(init)) scopes.at(-1)?.made.set(id.name, lineAt(start));
    },
    Identifier: ({ name }) => {
      const line = capturedAt(scopes, name);
      if (line !== undefined) found.set(name, line);
    },
  }).visit(program);
  return [...found].map(([name, line]) => ({ file, name, line }));
}

/** Where a name was made that a function uses later: one between the use and the making is neither run at once nor the maker itself. */
function capturedAt(scopes: readonly Scope[], name: string): number | undefined {
  let isLater = false;
  // At the level of the module nothing may be mutable, which another check sees to.
  for (let at = scopes.length - 1; at > 0; at -= 1) {
    const scope = scopes[at];
    const line = scope?.made.get(name);
    if (line !== undefined) return isLater ? line : undefined;
    if (scope?.isCallback === false) isLater = true;
  }
  return undefined;
}

function makesContainer(node: Node | null | undefined): boolean {
  if (node?.type === 'LogicalExpression') return makesContainer(node.right);
  return (
    node?.type === 'NewExpression' && node.callee.type === 'Identifier' && containers.has(node.callee.name)
  );
}

function isCache(node: Node | null | undefined): boolean {
  return (
    makesContainer(node) &&
    node?.type === 'NewExpression' &&
    'name' in node.callee &&
    node.callee.name === 'OctetCache'
  );
}

function nameOf(key: Node): string {
  return key.type === 'PrivateIdentifier' ? `#${key.name}` : 'name' in key ? String(key.name) : 'computed';
}

if (import.meta.main) await runAlone(findBoundsProblems);
