import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from '../../../scripts/build.ts';
import { bundle } from '../../../scripts/bundle.ts';
import { readText, repositoryRoot } from '../../../scripts/source-tree.ts';
import { linkModules, makeTree, ownFiles } from '../../repository/fixture-tree.ts';

const program = {
  ...ownFiles('package.json', 'tsconfig.json', 'tsconfig.build.json', 'src/store/worker-file.ts'),
  'src/main.ts':
    "#!/usr/bin/env node\nimport { Worker } from 'node:worker_threads';\nimport { greeting } from './store/greeting.ts';\n" +
    "import { workerFile } from './store/worker-file.ts';\n" +
    "new Worker(workerFile('./store/writer', import.meta.url), { workerData: greeting });\n",
  'src/index.ts': "export { greeting } from './store/greeting.ts';\n",
  'src/client/index.ts': 'export const three = 3;\n',
  'src/webhooks/index.ts': 'export const four = 4;\n',
  'src/testing.ts': 'export const five = 5;\n',
  'src/store/greeting.ts': "export const greeting: string = 'written';\n",
  'src/store/writer.ts':
    "import { workerData } from 'node:worker_threads';\nimport pg from 'pg';\n\nconsole.log(workerData as string, typeof pg.Client);\n",
};

test('a build is the program, its threads and their packages, with their licences, and declarations', async (t) => {
  const root = makeTree(t, { ...program, 'dist/left-over.js': '' });
  linkModules(root);
  await build(root);
  const output = execFileSync(process.execPath, [join(root, 'dist/main.js')], { encoding: 'utf8' });
  assert.equal(output, 'written function\n');
  assert.ok(readText(root, 'dist/main.js').startsWith('#!/usr/bin/env node\n'));
  assert.match(readText(root, 'dist/THIRD-PARTY-LICENSES'), /^-- pg \d.*\(MIT\)\n\nMIT License$/m);
  assert.ok(existsSync(join(root, 'dist/index.d.ts')));
  assert.ok(!existsSync(join(root, 'dist/left-over.js')));
});

test('a new bundle replaces the entry points and keeps the chunks that a running program may still load, for a day', async (t) => {
  const lazy = (text: string) =>
    `export const greet = async () => (await import('./store/${text}.ts')).greeting;\n`;
  const root = makeTree(t, { ...program, 'src/index.ts': lazy('greeting') });
  linkModules(root);
  await bundle(root);
  const chunk = readdirSync(join(root, 'dist')).find((name) => /^greeting-[A-Z0-9]{8}\.js$/.test(name)) ?? '';
  writeFileSync(join(root, 'src/store/greeting.ts'), "export const greeting: string = 'changed';\n");
  await bundle(root);
  assert.match(
    execFileSync(process.execPath, [join(root, 'dist/main.js')], { encoding: 'utf8' }),
    /^changed /,
  );
  assert.ok(existsSync(join(root, 'dist', chunk)));
  utimesSync(join(root, 'dist', chunk), 0, 0);
  await bundle(root);
  assert.ok(!existsSync(join(root, 'dist', chunk)));
});

test('a new bundle removes compiled code while running programs write more of it', async (t) => {
  const root = makeTree(t, program);
  linkModules(root);
  const cache = join(root, 'node_modules/.cache/comity/program');
  const writing =
    `const { mkdirSync, writeFileSync } = require('node:fs'); console.log('ready');` +
    `for (let n = 0, end = Date.now() + 30_000; Date.now() < end; n++) try {` +
    ` mkdirSync(process.argv[1], { recursive: true }); writeFileSync(process.argv[1] + '/' + n % 1000, ''); } catch {}`;
  const writer = spawn(process.execPath, ['-e', writing, cache], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(async () => {
    writer.kill();
    await once(writer, 'exit');
    rmSync(cache, { recursive: true, force: true });
  });
  await once(writer.stdout, 'data');
  for (let round = 0; round < 5; round++) await bundle(root);
  assert.equal(writer.exitCode, null);
});

test('two threads of one name cannot be bundled', async (t) => {
  const starting =
    "import { workerFile } from './store/worker-file.ts';\nworkerFile('./webhooks/writer', import.meta.url);\n";
  const root = makeTree(t, { ...program, 'src/index.ts': starting, 'src/webhooks/writer.ts': '' });
  linkModules(root);
  await assert.rejects(
    bundle(root),
    /src\/store\/writer\.ts and src\/webhooks\/writer\.ts have one name in the bundle/,
  );
});

test('a thread is one file, unless it imports a configuration, whose package it shares', async (t) => {
  const starting =
    "import { workerFile } from './store/worker-file.ts';\n" +
    "for (const url of [workerFile('./store/writer', import.meta.url), workerFile('./store/handler', import.meta.url)]) console.log(url);\n" +
    "export { greeting } from './store/greeting.ts';\n";
  const root = makeTree(t, {
    ...program,
    'src/index.ts': starting,
    'src/store/writer.ts': "export { greeting } from './greeting.ts';\n",
    'src/store/handler.ts':
      "export { greeting } from './greeting.ts';\nexport const run = (module: string) => import(module);\n",
  });
  linkModules(root);
  await bundle(root);
  const importsOf = (file: string) => importedBy(join(root, 'dist'), file, /from"\.\/([^"]+)"/g);
  assert.deepEqual(importsOf('writer.js'), []);
  const [chunk = ''] = importsOf('handler.js');
  assert.ok(importsOf('index.js').includes(chunk), chunk);
});

test('a start of the program loads no package that only a part of all programs needs', () => {
  const output = join(repositoryRoot, 'dist');
  const [command = ''] = importedBy(output, 'main.js', /import\("\.\/(program-[^"]+)"\)/g);
  const [serve = ''] = importedBy(output, command, /import\("\.\/(serve-[^"]+)"\)/g);
  const loaded = new Set([serve]);
  for (const file of loaded) {
    for (const each of importedBy(output, file, /(?:from|import)"\.\/([^"]+)"/g)) loaded.add(each);
  }
  const sources = [...loaded].flatMap((file): readonly string[] => {
    return JSON.parse(readFileSync(join(output, `${file}.map`), 'utf8')).sources;
  });
  assert.ok(sources.includes('../src/compose.ts'));
  for (const name of ['@peculiar/x509', '@simplewebauthn/server', 'nodemailer', 'pg', 'undici']) {
    assert.deepEqual(
      sources.filter((source) => source.includes(`node_modules/${name}/`)),
      [],
    );
  }
});

/** The files of the bundle that the pattern finds in one of them, in its first group. */
function importedBy(output: string, file: string, pattern: RegExp): readonly string[] {
  return [...readFileSync(join(output, file), 'utf8').matchAll(pattern)].map(([, found = '']) => found);
}
