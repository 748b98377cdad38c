/** The lines of mistakes: of the member in the file where it stands, also behind names, imports and types. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { placeMistakes } from '../../src/config/declaration-places.ts';
import { runCommand } from '../harness/command-line.ts';
import { linkPackage, temporaryFolder } from '../harness/temporary-folder.ts';

const configuration = `import { collection, computed, defineConfig, Type } from 'comity';
import { notes as imported } from './notes.ts';

type Unused = { readonly [name: string]: number };
const tasks = collection({
  schema: Type.Object({
    title: Type.String(),
  }),
  indexes: ['title',
    'titel'],
  access: {
    read: 'public',
    update: 'nobody' as never,
  },
});

export default defineConfig({
  title: '',
  collections: {
    tasks,
    notes: imported,
    ...{ pages: collection({ shema: 1 } as never) },
    counts: collection({
      schema: Type.Object({ n: Type.Integer() }),
      computed: {
        id: computed(Type.String(), () => 'x'),
      },
    }),
  },
  senders: {
    billing: { keep: ['ok', 'no good'] } as never,
  },
  subscribers: {
    'S 9': { events: ['tasks.*'], handler() {} },
  },
  settings: {
    port: -1,
  },
});
`;

const notes = `import { collection, Type } from 'comity';

export const notes = collection({
  schema: Type.Object({ text: Type.String() }),
  unique: ['txt'] as never,
});
`;

test('each mistake has the line of the member that it names', async () => {
  const folder = temporaryFolder();
  linkPackage(folder);
  writeFileSync(join(folder, 'notes.ts'), notes);
  const config = join(folder, 'comity.config.ts');
  writeFileSync(config, configuration);
  const { code, stderr } = await runCommand(['check'], {
    COMITY_CONFIG: config,
    COMITY_DRAIN_MS: 'soon',
  });
  assert.equal(code, 2);
  const lineOf = (sentence: RegExp): string | undefined => {
    const line = stderr.split('\n').find((each) => sentence.test(each));
    return /([\w.]+:\d+): /.exec(line ?? stderr)?.[1];
  };
  assert.equal(lineOf(/collection tasks: indexes/), 'comity.config.ts:10', stderr);
  assert.equal(lineOf(/collection tasks: access/), 'comity.config.ts:13', stderr);
  assert.equal(lineOf(/collection notes: unique/), 'notes.ts:5', stderr);
  assert.equal(lineOf(/collection pages: /), 'comity.config.ts:22', stderr);
  assert.equal(lineOf(/: title must/), 'comity.config.ts:18', stderr);
  assert.equal(lineOf(/sender billing: keep/), 'comity.config.ts:31', stderr);
  assert.equal(lineOf(/collection counts: computed declares "id"/), 'comity.config.ts:26', stderr);
  assert.equal(lineOf(/subscriber S 9: the name/), 'comity.config.ts:34', stderr);
  assert.match(stderr, /^comity: COMITY_DRAIN_MS must be an integer/m);
  assert.doesNotMatch(stderr, /Warning/);
});

test('mistakes of settings are told with those of the declaration, each with its line', async () => {
  const folder = temporaryFolder();
  const config = join(folder, 'comity.config.ts');
  writeFileSync(
    config,
    'export default {\n  colections: {},\n  collections: {},\n  settings: {\n    hookTimeoutMs: -5,\n    hookTimoutMs: 5,\n  },\n};\n',
  );
  const { stderr } = await runCommand(['check'], { COMITY_CONFIG: config, COMITY_LOG_LEVEL: 'loud' });
  for (const sentence of [
    /^comity: \S+comity\.config\.ts:2: "colections" is not a member of the configuration; did you mean collections\?$/m,
    /^comity: \S+comity\.config\.ts:5: settings\.hookTimeoutMs must be an integer from 10 to 600000, not -5$/m,
    /^comity: \S+comity\.config\.ts:6: settings\.hookTimoutMs is not a setting; did you mean hookTimeoutMs\?$/m,
    /^comity: COMITY_LOG_LEVEL must be one of/m,
  ]) {
    assert.match(stderr, sentence);
    assert.equal(stderr.split('\n').filter((line) => sentence.test(line)).length, 1, 'once');
  }
});

test('mistakes of settings have a line too, and the others have none', async () => {
  const folder = temporaryFolder();
  const config = join(folder, 'comity.config.ts');
  writeFileSync(config, 'export default {\n  collections: {},\n  settings: {\n    port: -1,\n  },\n};\n');
  const { stderr } = await runCommand(['check'], { COMITY_CONFIG: config, COMITY_LOG_LEVEL: 'loud' });
  assert.match(stderr, /^comity: \S+comity\.config\.ts:4: settings\.port must be/m);
  assert.match(stderr, /^comity: COMITY_LOG_LEVEL must be/m);
});

test('what is not found has the nearest line, or none', async () => {
  const folder = temporaryFolder();
  const config = join(folder, 'computed.mjs');
  writeFileSync(
    config,
    'const all = () => ({});\nexport default { collections: all(), ["ti" + "tle"]: 1 };\n',
  );
  const mistakes = ['collection x: schema must be', 'title must be', '', 'collections.x'];
  assert.deepEqual(await placeMistakes(config, mistakes), [
    `${config}:2: collection x: schema must be`,
    `${config}: title must be`,
    `${config}: `,
    `${config}:2: collections.x`,
  ]);
  writeFileSync(config, 'not javascript');
  assert.deepEqual(await placeMistakes(config, ['title must be']), [`${config}: title must be`]);
});
