/** A new required member with a default needs no declared migration: documents without it are filled in as a creation would be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openProjects } from './migrated-project.ts';

const source = (members: string, rest = '') =>
  `{ collections: { tickets: collection({ schema: Type.Object({ name: Type.String(), ${members} }) }) }, ${rest} }`;
const priority = 'priority: Type.Integer({ default: 3 })';
const names = ['a', 'b', 'c', 'd'];
const durations = /\s+\(\d+ ms\)/g;

for (const [engine, open] of await openProjects()) {
  test(`${engine}: fills in the defaults of documents that do not fit without them, when it migrates`, async () => {
    const { configure, seed, run, documents } = open();
    const old = configure('old', source(''));
    await seed(
      old,
      'tickets',
      names.map((name) => ({ name })),
    );
    const grown = configure('grown', source(priority));
    const [first] = await documents(old, 'tickets');
    const remedy = 'run "comity migrate", which fills in their defaults, or start with --migrate';
    const sentence = `tickets: documents may not fit its declaration, which has changed (/priority is required now); of 4 documents, 4 do not fit, such as tickets/${first?.id}: /priority is required; ${remedy}`;
    assert.deepEqual(await run(grown, 'serve'), { code: 5, stdout: '', stderr: `comity: ${sentence}\n` });
    assert.ok((await run(grown, 'check')).stdout.includes(sentence));
    const previewed = await run(grown, 'migrate', '--dry-run');
    assert.equal(previewed.code, 3);
    assert.match(
      previewed.stdout,
      /^tickets: 4 of 4 documents do not fit\n.*\n {2}defaults would fill in 4 documents$/m,
    );

    const migrated = await run(grown, 'migrate', '--yes');
    assert.equal(migrated.code, 0);
    assert.match(migrated.stdout.replaceAll(durations, ''), /^tickets: defaults filled in 4 documents$/m);
    const filled = await documents(grown, 'tickets');
    assert.deepEqual(
      filled.map(({ priority: each, updatedAt, createdAt }) => [each, updatedAt === createdAt]),
      names.map(() => [3, true]),
    );
    assert.match((await run(grown, 'migrate', '--dry-run')).stdout, /^Nothing to do/);
    assert.doesNotMatch((await run(grown, 'check')).stdout, /documents in the store/);
  });

  test(`${engine}: leaves a member without a default to a migration, and counts what its defaults change`, async () => {
    const { configure, seed, run, documents } = open();
    const old = configure('old', source(''));
    await seed(
      old,
      'tickets',
      names.map((name) => ({ name })),
    );
    const both = configure('both', source(`${priority}, owner: Type.String()`));
    const refused = await run(both, 'migrate', '--yes');
    assert.deepEqual(
      [refused.code, /declare a migration\n$/.test(refused.stderr)],
      [5, true],
      refused.stderr,
    );
    const identity = `migrations: [{ id: '1-priority', collection: 'tickets', touch: true, up: (document) => document }]`;
    const declared = configure('declared', source(priority, identity));
    const { stdout } = await run(declared, 'migrate', '--dry-run');
    assert.match(stdout, /^ {2}migration 1-priority would change 4$/m);
    const made = await run(declared, 'migrate', '--yes');
    assert.match(made.stdout, /^tickets: 1-priority changed 4 of 4 documents/m);
    for (const { priority: each, updatedAt, createdAt } of await documents(declared, 'tickets'))
      assert.deepEqual([each, String(updatedAt) > String(createdAt)], [3, true]);
  });
}
