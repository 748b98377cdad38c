/** A field that becomes unique while documents have equal values: found beforehand, refused with their ids, and made once they differ. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openProjects } from './migrated-project.ts';

const source = (rest: string, migrations = '') =>
  `{ collections: { parts: collection({ schema: Type.Object({ sku: Type.String(), at: Type.Optional(Type.Object({ n: Type.Number() })) }), ${rest} }) }, ${migrations} }`;

for (const [engine, open] of await openProjects()) {
  test(`${engine}: check, migrate and a start name the documents with equal values of a field that became unique`, async () => {
    const { configure, seed, run, documents } = open();
    const plain = configure('plain', source(''));
    const skus = ['a', 'b', 'a', 'c', 'b', 'a', 'd'];
    await seed(
      plain,
      'parts',
      skus.map((sku) => ({ sku, at: { n: sku === 'c' || sku === 'd' ? 1 : 2 * Math.random() } })),
    );
    const ids = new Map<string, string[]>();
    for (const { id, sku } of await documents(plain, 'parts'))
      ids.set(String(sku), [...(ids.get(String(sku)) ?? []), String(id)]);
    const [a = [], b = [], c = [], d = []] = ['a', 'b', 'c', 'd'].map((sku) => ids.get(sku)?.sort() ?? []);
    const remedy =
      'give each a value of its own, with a server of the earlier declaration or by a migration\n';
    const sentence = `parts: sku must be unique, and 5 documents have a value that another has: 3 have "a", such as ${a[0]} and ${a[2]}; 2 have "b", such as ${b[0]} and ${b[1]}; ${remedy}`;
    const unique = configure('unique', source(`unique: ['sku']`));

    const checked = await run(unique, 'check');
    assert.deepEqual([checked.code, checked.stdout.includes(sentence)], [0, true], checked.stdout);
    const previewed = await run(unique, 'migrate', '--dry-run');
    assert.deepEqual([previewed.code, previewed.stdout.includes(sentence)], [3, true], previewed.stdout);
    const told = JSON.parse((await run(unique, 'migrate', '--dry-run', '--json')).stdout);
    assert.deepEqual(told.documents.duplicates, [sentence.trimEnd()]);
    for (const command of [['migrate'], ['serve', '--migrate'], ...(engine === 'SQLite' ? [['serve']] : [])])
      assert.deepEqual(
        await run(unique, ...command),
        { code: 5, stdout: '', stderr: `comity: ${sentence}` },
        command.join(' '),
      );

    const nested = configure('nested', source(`unique: ['at.n']`));
    const { code, stderr } = await run(nested, 'migrate');
    const pair = [...c, ...d].sort();
    const ofNested = `comity: parts: at.n must be unique, and 2 documents have a value that another has: 2 have 1, such as ${pair[0]} and ${pair[1]}; ${remedy}`;
    assert.deepEqual([code, stderr], [5, ofNested]);

    const together = configure('together', source(`unique: [['sku', 'at.n']]`));
    assert.equal((await run(together, 'migrate', '--yes')).code, 0);
    const apart = configure('apart', source(`unique: [{ fields: ['sku'], ignoreCase: true }]`));
    const ofCase = `comity: parts: sku must be unique apart from case, and 5 documents have a value that another has: 3 have "a", such as ${a[0]} and ${a[2]}; 2 have "b", such as ${b[0]} and ${b[1]}; ${remedy}`;
    assert.equal((await run(apart, 'migrate')).stderr, ofCase);

    const migration = `migrations: [{ id: '1-own-skus', collection: 'parts', up: (part) => ({ ...part, sku: part.sku + part.id }) }]`;
    const migrated = configure('migrated', source(`unique: ['sku']`, migration));
    assert.doesNotMatch((await run(migrated, 'check')).stdout, /must be unique/);
    assert.equal((await run(migrated, 'migrate', '--yes')).code, 0);
    assert.equal((await run(migrated, 'migrate', '--dry-run')).code, 0);
  });
}
