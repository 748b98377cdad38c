/** What processes on one store compare with each other. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import { Type } from 'typebox';
import { fingerprintOf, resolveConfiguration } from '../../src/config/configuration.ts';
import type { ConfigurationDeclaration } from '../../src/config/define.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { allow } from '../../src/model/access-function.ts';
import type { CollectionDeclaration } from '../../src/model/collection.ts';

const digest = (text: string) => hash('sha256', text, 'hex');
const things = { schema: Type.Object({ name: Type.String(), price: Type.Number() }) };

function printOf(
  declaration: Partial<ConfigurationDeclaration> = {},
  environment: Readonly<Record<string, string>> = {},
  program = '1.0.0',
) {
  const configuration = resolveConfiguration({ collections: { things }, ...declaration });
  const { settings } = loadSettings(environment, {}, {});
  return fingerprintOf(configuration, settings, program, digest);
}

function withThings(change: Partial<CollectionDeclaration>): Partial<ConfigurationDeclaration> {
  return { collections: { things: { ...things, ...change } } };
}

test('is the same for the same configuration, however its members are ordered', () => {
  const notes = { schema: Type.Object({ text: Type.String() }) };
  const one = {
    collections: { things: { ...things, access: { read: 'public', create: 'administrator' } }, notes },
  };
  const other = {
    collections: { notes, things: { access: { create: 'administrator', read: 'public' }, ...things } },
  };
  assert.deepEqual(printOf(one as never), printOf(other as never));
});

test('differs in its collections by name, schema, access, index, conduct, base path and version of the interface', () => {
  const prints = [
    printOf(),
    printOf({ collections: { others: things } }),
    printOf(withThings({ schema: Type.Object({ name: Type.String(), price: Type.Integer() }) })),
    printOf(withThings({ access: { read: 'public' } })),
    printOf(withThings({ access: { read: allow((principal) => principal.roles.has('a')) } })),
    printOf(withThings({ access: { read: allow((principal) => principal.roles.has('b')) } })),
    printOf(withThings({ readOnly: { price: 'owner' } })),
    printOf(withThings({ hidden: { price: 'owner' } })),
    printOf(withThings({ tenantField: 'name' })),
    printOf(withThings({ indexes: ['name'] })),
    printOf(withThings({ unique: ['name'] })),
    printOf(withThings({ unpatchable: ['name'] })),
    printOf(withThings({ softDelete: true })),
    printOf({ base: '/api/v2' }),
    printOf({ apiVersion: '2' }),
  ];
  assert.equal(new Set(prints.map(({ collections }) => collections)).size, prints.length);
  assert.equal(new Set(prints.map(({ settings }) => settings)).size, 1);
});

test('differs in its settings by those that must agree, and by no other', () => {
  const prints = [
    printOf(),
    printOf({}, { COMITY_IDEMPOTENCY_SECONDS: '10' }),
    printOf({}, { COMITY_OPERATION_SECONDS: '10' }),
    printOf({}, { COMITY_STORED_QUERY_SECONDS: '10' }),
    printOf({}, { COMITY_EVENT_RETENTION_SECONDS: '100' }),
    printOf({}, { COMITY_RATE_LIMIT_READS: '10' }),
    printOf({}, { COMITY_RATE_LIMIT_WRITES: '10' }),
    printOf({}, { COMITY_ADMIN_KEY: 'sk_0123456789abcdef0123' }),
  ];
  assert.equal(new Set(prints.map(({ settings }) => settings)).size, prints.length);
  assert.deepEqual(
    printOf({}, { COMITY_PORT: '1', COMITY_HOST: '::1', COMITY_LOG_LEVEL: 'debug' }),
    printOf(),
  );
});

test('tells nothing of a key, and the version of the program as it is', () => {
  const one = printOf({}, { COMITY_ADMIN_KEY: 'sk_0123456789abcdef0123' });
  assert.deepEqual(printOf({}, { COMITY_ADMIN_KEY: 'sk_another9abcdef012345' }), one);
  assert.equal(one.program, '1.0.0');
});
