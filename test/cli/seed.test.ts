/** `comity seed`: a module and lines of JSON, by all rules of the collections. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createComity } from 'comity';
import { runCommand } from '../harness/command-line.ts';
import { linkPackage, temporaryFolder } from '../harness/temporary-folder.ts';

const configuration = `
import { collection, defineConfig, Type } from 'comity';
export default defineConfig({
  collections: {
    pages: collection({ schema: Type.Object({ title: Type.String() }), putCreates: true }),
    notes: collection({ schema: Type.Object({ text: Type.String() }) }),
  },
});
`;

/** A folder with the configuration, and the files that a test writes into it. */
function project() {
  const folder = temporaryFolder();
  linkPackage(folder);
  const config = join(folder, 'seed.config.ts');
  writeFileSync(config, configuration);
  const environment = {
    COMITY_CONFIG: config,
    COMITY_DATA: join(folder, 'data'),
    COMITY_ADMIN_KEY: 'sk_of_the_seed',
  };
  return { folder, config, environment, lines: join(folder, 'seed.ndjson'), module: join(folder, 'seed.ts') };
}

test('writes the documents of a file, and those with an id as often as it is run', async () => {
  const { config, environment, lines, module } = project();
  writeFileSync(lines, '{"collection":"pages","id":"home","fields":{"title":"Home"}}\n\n');
  for (const _ of [1, 2]) {
    const { code, stdout, stderr } = await runCommand(['seed', lines], environment);
    assert.deepEqual([code, stdout], [0, `Wrote 1 documents of ${lines}.\n`], stderr);
  }
  writeFileSync(
    module,
    `export default async ({ resources }) => { await resources.notes.create({ text: 'x' }); };`,
  );
  assert.equal((await runCommand(['seed', module], environment)).code, 0);

  const { default: declaration } = await import(config);
  const comity = await createComity(declaration, {
    COMITY_DATA: environment.COMITY_DATA,
    COMITY_LOG_LEVEL: 'error',
  });
  const { pages, notes } = comity.resources as unknown as Record<string, { list(): Promise<unknown[]> }>;
  assert.deepEqual([(await pages?.list())?.length, (await notes?.list())?.length], [1, 1]);
  await comity.close();
});

test('tells the mistakes of all lines, and writes nothing while one is malformed', async () => {
  const { environment, lines } = project();
  for (const [line, sentence] of [
    ['{"collection":"pages","fields":{"title":1}}', /seed\.ndjson:1: .*title/],
    ['{"collection":"sites","fields":{}}', /seed\.ndjson:1: no collection is named "sites"/],
    ['{"collection":"notes"}', /seed\.ndjson:1: fields must be an object, not undefined/],
    ['[]', /seed\.ndjson:1: a line must be an object, not a list/],
    ['{', /seed\.ndjson:1: .*JSON/],
  ] as const) {
    writeFileSync(lines, line);
    const { code, stderr } = await runCommand(['seed', lines], environment);
    assert.equal(code, 1);
    assert.match(stderr, sentence);
  }
  const own = '{"collection":"notes","id":"first","fields":{"text":"x"}}';
  writeFileSync(lines, own);
  assert.match(
    (await runCommand(['seed', lines], environment)).stderr,
    /seed\.ndjson:1: notes has no document "first".*: set putCreates: true on the collection, or leave the id out/,
  );
  const good = '{"collection":"pages","id":"home","fields":{"title":"Home"}}';
  writeFileSync(
    lines,
    [good, '{"collection":"page","fields":{}}', 'not json', '{"collection":"pages"}'].join('\n'),
  );
  const malformed = await runCommand(['seed', lines], environment);
  assert.equal(malformed.code, 1);
  assert.match(
    malformed.stderr,
    /:2: no collection is named "page"; did you mean pages\?\n.*:3: .*JSON.*\n.*:4: fields must/,
  );
  assert.match(malformed.stderr, /3 mistakes in lines of .*; nothing was written\n$/);
  writeFileSync(lines, [own, good, '{"collection":"pages","fields":{"titel":1}}'].join('\n'));
  const refused = await runCommand(['seed', lines], environment);
  assert.match(
    refused.stderr,
    /:1: notes has no.*\n.*:3: .*titel.*\n.*2 mistakes in lines of .*; 1 documents were written\n$/,
  );
});

test('tells the place of what a function throws', async () => {
  const { folder, environment, module } = project();
  for (const [name, text, sentence] of [
    ['throws.ts', '\nexport default async () => {\n  throw new Error("mid");\n};', /throws\.ts:3: mid/],
    [
      'refused.ts',
      '\nexport default async ({ resources }) => {\n  await resources.notes.create({});\n};',
      /refused\.ts:3: .*text/,
    ],
    ['syntax.ts', '\nexport default async ( => 1;', /syntax\.ts:2: /],
    [
      'names.ts',
      'export default async ({ resources }) => { await resources.sites.create({}); };',
      /names\.ts:1: no collection is named "sites"/,
    ],
  ] as const) {
    const path = join(folder, name);
    writeFileSync(path, text);
    const { code, stderr } = await runCommand(['seed', path], environment);
    assert.equal(code, 1);
    assert.match(stderr, sentence);
  }
  writeFileSync(join(folder, 's.csv'), 'a,b');
  assert.match(
    (await runCommand(['seed', join(folder, 's.csv')], environment)).stderr,
    /s\.csv must be a module \(\.ts, \.js, \.mjs\), or lines of JSON \(\.ndjson, \.jsonl\)/,
  );
  writeFileSync(module, 'export default 1;');
  assert.match(
    (await runCommand(['seed', module.replace('seed.ts', 'none.ts')], environment)).stderr,
    /there is no file/,
  );
});
