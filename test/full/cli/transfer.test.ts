/** `comity import` and `comity export`: documents of a running server as files, from one store to the other. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommand } from '../../harness/command-line.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { TestDatabase } from '../../harness/postgres-database.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, shopConfig, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const folder = temporaryFolder();
const api = '/api/v1';
let first: RunningServer;
let second: RunningServer;
let database: TestDatabase;
let categoryId = '';

before(async () => {
  database = await databaseOfProgram(shopConfig);
  first = await startServer({});
  second = await startServer({ env: { COMITY_DATABASE_URL: database.url } });
  categoryId = String((await first.send('POST', `${api}/categories`, { json: { name: 'C' } })).json().id);
  const items = Array.from({ length: 700 }, (_, at) => ({
    ...{ name: `Product "${at}", é😀`, price: at / 10, categoryId, stock: at },
    ...(at % 2 === 0 ? {} : { tags: ['a,b', 'c'] }),
  }));
  assert.equal((await first.send('POST', `${api}/products/bulk`, { json: { items } })).status, 200);
});

after(async () => {
  await Promise.all([first.stop(), second.stop()]);
  await database.dispose();
});

const run = (server: RunningServer, args: readonly string[], input?: string) =>
  runCommand(
    args,
    { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey },
    input === undefined ? {} : { input },
  );

async function documents(server: RunningServer, collection: string): Promise<string> {
  const outcome = await run(server, ['export', collection]);
  assert.equal(outcome.code, 0, outcome.stderr);
  return outcome.stdout;
}

describe('an export', () => {
  test('writes every document once, by id, with its owner, and says how many', async () => {
    const { stdout, stderr, code } = await run(first, ['export', 'products']);
    assert.equal(code, 0, stderr);
    assert.equal(stderr, 'comity: 700 documents of products\n');
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const ids = lines.map(({ id }) => String(id));
    assert.deepEqual(ids, [...new Set(ids)].sort());
    assert.equal(lines.length, 700);
    assert.ok(lines.every((line) => Object.hasOwn(line, 'owner')));
  });

  test('keeps to a filter, and refuses what is none', async () => {
    const some = await run(first, ['export', 'products', '--filter', 'stock[lt]=3']);
    assert.equal(some.stdout.trimEnd().split('\n').length, 3);
    const limit = await run(first, ['export', 'products', '--filter', 'limit=3']);
    assert.equal(limit.code, 2);
    assert.match(limit.stderr, /--filter takes conditions on fields, not limit/);
    const unknown = await run(first, ['export', 'products', '--filter', 'colour=red']);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /unknown field "colour"/);
  });

  test('writes CSV with every member as a column, quoted where it must be', async () => {
    const { stdout } = await run(first, [
      'export',
      'products',
      '--format',
      'csv',
      '--filter',
      'stock[lte]=1',
    ]);
    const [head, even, odd, end] = stdout.split('\r\n');
    assert.equal(head, 'id,name,price,categoryId,stock,createdAt,updatedAt,owner,tags');
    assert.match(even ?? '', /,"Product ""0"", é😀",0,[^,]+,0,/);
    assert.match(odd ?? '', /,"\[""a,b"",""c""\]"$/);
    assert.equal(end, '');
    const chosen = await run(first, [
      'export',
      'products',
      '--format',
      'csv',
      '--columns',
      'stock,sku',
      '--filter',
      'stock=1',
    ]);
    assert.equal(chosen.stdout, 'stock,sku\r\n1,\r\n');
  });

  test('guards texts of CSV that a spreadsheet would run, and begins with a byte order mark where asked', async () => {
    const made = await first.send('POST', `${api}/categories`, { json: { name: '=HYPERLINK("x")' } });
    const csv = [
      'export',
      'categories',
      '--format',
      'csv',
      '--columns',
      'name',
      '--filter',
      'name[like]=%HYPER%',
    ];
    assert.equal((await run(first, csv)).stdout, 'name\r\n"\'=HYPERLINK(""x"")"\r\n');
    const plain = await run(first, [...csv, '--no-guard', '--bom']);
    assert.equal(plain.stdout, '\ufeffname\r\n"=HYPERLINK(""x"")"\r\n');
    assert.equal((await run(first, ['export', 'categories', '--bom'])).code, 2);
    assert.equal((await first.send('DELETE', `${api}/categories/${made.json().id}`)).status, 204);
  });

  test('writes a file that appears when it is whole, and never over another', async () => {
    const file = join(folder, 'whole.ndjson');
    const written = await run(first, ['export', 'products', '-o', file]);
    assert.equal(written.stdout, `${file}: 700 documents of products\n`);
    assert.equal(await readFile(file, 'utf8'), await documents(first, 'products'));
    const again = await run(first, ['export', 'products', '-o', file]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /exists already/);
  });

  test('is for administrators, of collections that exist', async () => {
    const missing = await run(first, ['export', 'nothing']);
    assert.match(missing.stderr, /there is no collection nothing/);
    const answer = await first.send('GET', `${api}/products/bulk`, { anonymous: true });
    assert.equal(answer.status, 401);
  });
});

describe('an import', () => {
  test('of an export gives the same documents in the other store, byte for byte, and again changes nothing', async () => {
    for (const collection of ['categories', 'products']) {
      const file = join(folder, `${collection}.ndjson`);
      const exported = await documents(first, collection);
      await writeFile(file, exported);
      const { stdout, stderr, code } = await run(second, ['import', file]);
      assert.equal(code, 0, stderr);
      assert.match(stdout, new RegExp(`^${collection}: \\d+ created, 0 updated, 0 unchanged, 0 refused`));
      assert.equal(await documents(second, collection), exported);
      const again = await run(second, ['import', file, '--existing', 'update']);
      assert.match(again.stdout, /: 0 created, 0 updated, \d+ unchanged, 0 refused/);
    }
    const id = /"id":"([^"]+)"/.exec(await documents(first, 'products'))?.[1];
    const [one, other] = await Promise.all(
      [first, second].map((server) => server.send('GET', `${api}/products/${id}`)),
    );
    assert.equal(one?.body, other?.body);
  });

  test('tells which lines were refused, imports the others, and exits 1', async () => {
    const input = [
      JSON.stringify({ id: 'line-1', name: 'A', price: 1, categoryId }),
      'no json',
      '',
      JSON.stringify({ id: 'line-4', name: 'B', price: 'x', categoryId }),
      JSON.stringify({ id: 'line-5', name: 'C', price: 1, categoryId: 'none' }),
      '[1]',
      JSON.stringify({ id: 'line-7', name: 'D', price: 1, categoryId }),
    ].join('\n');
    const { code, stdout, stderr } = await run(first, ['import', '-', '--collection', 'products'], input);
    assert.equal(code, 1);
    assert.equal(stdout, 'products: 2 created, 0 updated, 0 unchanged, 4 refused\n');
    const lines = stderr.trimEnd().split('\n');
    assert.match(lines[0] ?? '', /^comity: -:2: malformed JSON/);
    assert.match(lines[1] ?? '', /^comity: -:4: price must be a number/);
    assert.match(lines[2] ?? '', /^comity: -:5: categoryId names a resource that does not exist/);
    assert.match(lines[3] ?? '', /^comity: -:6: the record must be a JSON object/);
    const again = await run(first, ['import', '-', '--collection', 'products', '--json'], input);
    assert.deepEqual(JSON.parse(again.stdout), {
      ...{ collection: 'products', created: 0, updated: 0, unchanged: 2, refused: 4 },
    });
  });

  test('of CSV gives the documents that an export of CSV was written from, byte for byte', async () => {
    const texts = [
      '',
      ' ',
      "'",
      "'=1",
      "''=1",
      '=1+1',
      '-5',
      '@a',
      '\tx',
      '12',
      'true',
      'null',
      '[1]',
      '{"a":1}',
      'a"b',
      'a,b',
      'a\nb\r\nc',
      'é😀',
    ];
    const items = texts.map((body, at) => ({ id: `text-${at}`, title: 'Text', body }));
    const made = await first.send('POST', `${api}/articles/bulk`, { json: { items, import: true } });
    assert.equal(made.status, 200, made.body);
    for (const [collection, args] of [
      ['articles', []],
      ['products', ['--bom']],
    ] as const) {
      const file = join(folder, `${collection}.csv`);
      const exported = await run(first, ['export', collection, '--format', 'csv', '-o', file, ...args]);
      assert.equal(exported.code, 0, exported.stderr);
      const before = await documents(first, collection);
      const again = await run(first, ['import', file, '--existing', 'update']);
      assert.match(again.stdout, /: 0 created, 0 updated, \d+ unchanged, 0 refused/, again.stderr);
      const imported = await run(second, ['import', file, '--existing', 'update']);
      assert.equal(imported.code, 0, imported.stderr);
      assert.equal(await documents(second, collection), before);
    }
  });

  test('of CSV and of a JSON array counts before it writes, by a mode and a key', async () => {
    const file = join(folder, 'goods.csv');
    await writeFile(file, `sku,name,price,categoryId\nS1,One,1,${categoryId}\nS2,Two,x,${categoryId}\n`);
    const args = ['import', file, '--collection', 'products', '--mode', 'upsert', '--key', 'sku'];
    const dry = await run(first, [...args, '--dry-run']);
    assert.deepEqual(
      [dry.code, dry.stdout, dry.stderr],
      [
        1,
        'products: 1 created, 0 updated, 0 unchanged, 1 refused\n',
        `comity: ${file}:3:3: price must be a number\n`,
      ],
    );
    assert.equal((await run(first, args)).stdout, dry.stdout);
    const changed = JSON.stringify([{ sku: 'S1', name: 'One', price: 2, categoryId }]);
    const upserted = await run(first, ['import', '-', '--format', 'json', ...args.slice(2)], changed);
    assert.equal(
      upserted.stdout,
      'products: 0 created, 1 updated, 0 unchanged, 0 refused\n',
      upserted.stderr,
    );
  });

  test('of CSV without a header takes the members of its columns, and leaves columns out', async () => {
    const args = [
      'import',
      '-',
      '--collection',
      'products',
      '--no-header',
      '--columns',
      'sku,,name,price,categoryId.id',
    ];
    const rows = `N1,x,One,1,${categoryId}\nN2,x,Two,2,none\n`;
    const { code, stdout, stderr } = await run(first, [...args, '--format', 'csv'], rows);
    assert.deepEqual(
      [code, stdout, stderr],
      [
        1,
        'products: 1 created, 0 updated, 0 unchanged, 1 refused\n',
        'comity: -:2:5: categoryId/id no document of categories has id "none"\n',
      ],
    );
    const other = await run(first, [...args, '--format', 'ndjson'], '{}');
    assert.equal(other.code, 2);
    assert.match(other.stderr, /--columns and --no-header are for CSV/);
  });

  test('that the server cannot read on names the line and what was written', async () => {
    const input = 'text\none\n"two\n';
    const outcome = await run(first, ['import', '-', '--collection', 'notes', '--format', 'csv'], input);
    assert.equal(outcome.code, 1);
    assert.equal(outcome.stdout, 'notes: 1 created, 0 updated, 0 unchanged, 0 refused\n');
    assert.match(outcome.stderr, /stopped: line 3: a quote is not closed .*; run it again to continue/);
  });

  test('needs the name of a collection, a file and an administrator', async () => {
    assert.equal((await run(first, ['import', '-'], '')).code, 2);
    const missing = await run(first, ['import', join(folder, 'missing.ndjson')]);
    assert.match(missing.stderr, /missing\.ndjson cannot be read/);
    const unknown = await run(first, ['import', '-', '--collection', 'nothing'], '{}');
    assert.match(unknown.stderr, /stopped: there is no collection nothing; run it again/);
  });
});
