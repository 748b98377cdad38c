/** What a configuration may not say about files, and which fields a file has for queries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { ConfigurationError } from '../../src/config/inspection.ts';
import { File, MiB } from '../../src/model/file.ts';

const file = File({ bytesMax: MiB });
const member = (scan: unknown, rest: object = {}) => ({
  tickets: { schema: Type.Object({ title: Type.String(), scan } as never), ...rest },
});
const rule = (given: object) => member(Type.Optional(File({ bytesMax: 1, ...given } as never)));

const mistakes: readonly (readonly [what: string, declared: object, mistake: RegExp])[] = [
  ['no bound', member(File({} as never)), /schema\.scan: File needs bytesMax, a whole number from 1 to/],
  ['a bound of 0', rule({ bytesMax: 0 }), /File needs bytesMax, .* not 0/],
  ['an unknown member', rule({ maxBytes: 1 }), /File has the member "maxBytes"/],
  ['no type', rule({ types: [] }), /types of File must be a list of types/],
  ['a type that is none', rule({ types: ['png'] }), /types of File takes types such as image\/png .*"png"/],
  ['a list without an end', member(Type.Array(file)), /schema\.scan must have maxItems/],
  [
    'a file within an object',
    member(Type.Object({ of: file })),
    /schema\.scan\.of is a file: it must be a member/,
  ],
  [
    'a name that is no path',
    { tickets: { schema: Type.Object({ 'a b': file }) } },
    /whose name is part of its URL/,
  ],
  [
    'the path of history',
    { tickets: { schema: Type.Object({ history: file }) } },
    /history is a path of Comity/,
  ],
  [
    'the path of an action',
    member(file, {
      actions: { check: { on: 'member', method: 'POST', path: '/scan/check', handler: () => undefined } },
    }),
    /schema\.scan is a file, and actions\.check has its path/,
  ],
  [
    'a preview of no size',
    rule({ previews: { small: { width: 0, height: 1 } } }),
    /small\.width must be a whole/,
  ],
  [
    'an unknown fit',
    rule({ previews: { small: { width: 1, height: 1, fit: 'fill' } } }),
    /small\.fit must be/,
  ],
  [
    'a preview with a bad name',
    rule({ previews: { 'A/b': { width: 1, height: 1 } } }),
    /the name of a preview/,
  ],
  ['a file that is indexed', member(file, { indexes: ['scan'] }), /indexes names "scan"/],
];

test('names every mistake in a declaration of files', () => {
  for (const [what, declared, mistake] of mistakes)
    assert.throws(
      () => resolveCollections(declared as never),
      (error) => {
        assert.ok(error instanceof ConfigurationError, what);
        assert.match(error.mistakes.join('\n'), mistake, what);
        return true;
      },
    );
});

test('queries may name what a file is, and not where it is', () => {
  const { tickets } = Object.fromEntries(
    resolveCollections(member(Type.Optional(file), { indexes: ['scan.bytes'] }) as never),
  );
  const names = [...(tickets?.fields.keys() ?? [])].filter((name) => name.startsWith('scan'));
  assert.deepEqual(names, ['scan', 'scan.id', 'scan.name', 'scan.type', 'scan.bytes', 'scan.digest']);
  assert.deepEqual([...(tickets?.files ?? [])].length, 1);
});
