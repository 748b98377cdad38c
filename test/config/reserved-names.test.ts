/** Reserved names are those that the program itself uses: a collection with another passes `comity check`, and must start. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { reservedBases, reservedCollections, reservedPaths } from '../../src/config/reserved-names.ts';
import { storeTables } from '../../src/store-tables.ts';
import { serverOfFile } from '../harness/running-server.ts';

const base = '/api/v1/';
/** Reserved for what may come, or for their meaning elsewhere. */
const planned = ['admin', 'batch', 'openapi', 'results', 'senders', 'well-known'];
const possible = /^[a-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*$/;
const { send } = await serverOfFile();
const shop = ['categories', 'products', 'articles', 'notes'];
/** Of a program whose collections have files. */
const ofFiles = ['files', 'uploads'];

async function paths(): Promise<readonly string[]> {
  const answers = await Promise.all(
    ['', '?part=operator'].map((query) => send('GET', `/openapi.json${query}`)),
  );
  return answers
    .filter(({ status }) => status === 200)
    .flatMap(({ json }) => Object.keys(json().paths as object));
}

test('reserves the first segment of every path of the program, below the base and beside it', async () => {
  const all = await paths();
  const below = all.filter((path) => path.startsWith(base)).map((path) => path.split('/')[3] ?? '');
  const own = new Set(below.filter((name) => !shop.includes(name)));
  assert.ok(own.size > 20 && own.has('hold'));
  assert.deepEqual(
    [...own].filter((name) => !reservedPaths.has(name)),
    [],
  );
  const beside = all.filter((path) => !path.startsWith(base)).map((path) => path.split('/')[1] ?? '');
  assert.deepEqual(
    beside.filter((name) => name !== '' && !reservedBases.has(name)),
    [],
  );
  const known = new Set([...own, ...reservedBases, ...ofFiles, ...planned]);
  assert.deepEqual(
    [...reservedPaths].filter((name) => !known.has(name)),
    [],
  );
});

test('reserves the name of every table that a collection could have', () => {
  const tables = storeTables(resolveConfiguration({ collections: {} })).map(({ name }) => name);
  const own = tables.filter((name) => possible.test(name));
  assert.ok(own.includes('sessions'));
  assert.deepEqual(
    own.filter((name) => !reservedCollections.has(name)),
    [],
  );
});
