import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findTypeProblems } from '../../../scripts/checks/compile.ts';
import { linkModules, makeTree, ownFiles, placesOf } from '../../repository/fixture-tree.ts';

const projects = {
  ...ownFiles('package.json', 'tsconfig.json', 'tsconfig.pure.json', 'tsconfig.build.json'),
  // The build names them.
  'src/index.ts': 'export {};\n',
  'src/client/index.ts': 'export {};\n',
  'src/webhooks/index.ts': 'export {};\n',
  'src/testing.ts': 'export {};\n',
};

test('a wrong type is found in source and in tests', async (t) => {
  const root = makeTree(t, {
    ...projects,
    'src/http/a.ts': 'export const a: number = 1;\n',
    'src/server/b.ts': "\nexport const b: number = 'one';\n",
    'test/b.test.ts': "import { a } from '../src/http/a.ts';\nexport const c: string = a;\n",
  });
  linkModules(root);
  assert.deepEqual(placesOf(await findTypeProblems(root)), ['src/server/b.ts:2', 'test/b.test.ts:2']);
});

test('a pure folder cannot name what belongs to Node, a browser or a clock of theirs', async (t) => {
  const root = makeTree(t, {
    ...projects,
    'src/http/bytes.ts': 'export type Bytes = Buffer;\n',
    'src/http/decode.ts': 'export const decoder = new TextDecoder();\n',
    'src/model/env.ts': 'export const env = process.env;\n',
    'src/model/net.ts': "import { isIP } from 'node:net';\nexport const kind = isIP('::1');\n",
    'src/model/plain.ts': 'export const tags = new Set<string>();\n',
    'src/server/bytes.ts': 'export type Bytes = Buffer;\n',
  });
  linkModules(root);
  assert.deepEqual(placesOf(await findTypeProblems(root)), [
    'src/http/bytes.ts:1',
    'src/http/decode.ts:1',
    'src/model/env.ts:1',
    'src/model/net.ts:1',
  ]);
});

test('each strict flag holds', async (t) => {
  const faults: Readonly<Record<string, string>> = {
    'array-access': 'export const first = (list: readonly string[]): string => list[0];',
    'caught-value': 'export function go() { try { return 1; } catch (error) { return error.message; } }',
    enumeration: 'export enum Kind { a }',
    'missing-override': 'class A { go() {} }\nexport class B extends A { go() {} }',
    'missing-return': 'export function go(on: boolean) { if (on) return 1; }',
    'parameter-property': 'export class A { constructor(readonly a: string) {} }',
    'type-import': "import { A } from './types-only.ts';\nexport type B = A;",
    'undefined-member': 'export const a: { b?: number } = { b: undefined };',
    'unused-local': 'export function go() { const a = 1; }',
    'unused-parameter': 'export function go(a: number) {}',
  };
  const files = Object.entries(faults).map(([name, text]) => [`src/server/${name}.ts`, `${text}\n`]);
  const root = makeTree(t, {
    ...projects,
    'src/http/a.ts': 'export const a = 1;\n',
    'src/server/types-only.ts': 'export type A = string;\n',
    ...Object.fromEntries(files),
  });
  linkModules(root);
  const found = new Set((await findTypeProblems(root)).map(({ file }) => file));
  assert.deepEqual(
    [...found].sort(),
    files.map(([path]) => path),
  );
});
