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

test('writes the documents of a file, and those with an id as often as it is run', async () => {
  const folder = temporaryFolder();
  linkPackage(folder);
  const config = join(folder, 'seed.config.ts');
  writeFileSync(config, configuration);
  const environment = {
    COMITY_CONFIG: config,
    COMITY_DATA: join(folder, 'data'),
    COMITY_ADMIN_KEY: 'sk_of_the_seed',
  };
  const lines = join(folder, 'seed.ndjson');
  writeFileSync(lines, '{"collection":"pages","id":"home","fields":{"title":"Home"}}\n\n');
  for (const _ of [1, 2]) {
    const { code, stdout, stderr } = await runCommand(['seed', lines], environment);
    assert.deepEqual([code, stdout], [0, `Wrote 1 documents of ${lines}.\n`], stderr);
  }
  const module = join(folder, 'seed.ts');
  writeFileSync(
    module,
    `export default async ({ resources }) => { await resources.notes.create({ text: 'x' }); };`,
  );
  assert.equal((await runCommand(['seed', module], environment)).code, 0);

  for (const [line, sentence] of [
    ['{"collection":"pages","fields":{"title":1}}', /seed\.ndjson:1: .*title/],
    ['{"collection":"sites","fields":{}}', /seed\.ndjson:1: no collection has this name/],
    ['{"collection":"notes"}', /seed\.ndjson:1: fields must be an object, not undefined/],
    ['[]', /seed\.ndjson:1: a line must be an object, not a list/],
    ['{', /seed\.ndjson:1: .*JSON/],
  ] as const) {
    writeFileSync(lines, line);
    const { code, stderr } = await runCommand(['seed', lines], environment);
    assert.equal(code, 1);
    assert.match(stderr, sentence);
  }
  writeFileSync(module, 'export default 1;');
  assert.match(
    (await runCommand(['seed', module.replace('seed.ts', 'none.ts')], environment)).stderr,
    /there is no file/,
  );

  const { default: declaration } = await import(config);
  const comity = await createComity(declaration, {
    COMITY_DATA: environment.COMITY_DATA,
    COMITY_LOG_LEVEL: 'error',
  });
  const { pages, notes } = comity.resources as unknown as Record<string, { list(): Promise<unknown[]> }>;
  assert.deepEqual([(await pages?.list())?.length, (await notes?.list())?.length], [1, 1]);
  await comity.close();
});
