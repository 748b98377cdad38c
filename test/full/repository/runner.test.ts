import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { until } from '../../harness/until.ts';
import { linkModules, makeTree, ownFiles } from '../../repository/fixture-tree.ts';

const runner = ownFiles(
  'package.json',
  'scripts/source-tree.ts',
  'scripts/test.ts',
  'scripts/testing/memory-folder.ts',
  'scripts/testing/preload.ts',
  'scripts/testing/print.ts',
  'scripts/testing/processor-time.ts',
  'scripts/testing/protocol.ts',
  'scripts/testing/reporter.ts',
  'scripts/testing/run-files.ts',
  'scripts/testing/select-files.ts',
  'scripts/testing/shard.ts',
  'scripts/testing/tracking.ts',
  'test/harness/postgres-server/binaries.ts',
  'test/harness/postgres-server/keeper.ts',
  'test/harness/postgres-server/keeper-process.ts',
  'test/harness/postgres-server/run-server.ts',
);
const passing = "import { test } from 'node:test';\ntest('passes', () => {});\n";
const failing = "import { test } from 'node:test';\ntest('breaks', () => { throw new Error('broken'); });\n";
const skipping = "import { test } from 'node:test';\ntest.skip('waits', () => {});\n";

const watcher = ownFiles('scripts/parse-source.ts', 'scripts/testing/reach.ts', 'scripts/testing/watch.ts');

test('watching runs the tests that a changed file reaches, again and again', async (t) => {
  const importing = "import { test } from 'node:test';\nimport './b.ts';\ntest('reaches', () => {});\n";
  const root = makeTree(t, {
    ...runner,
    ...watcher,
    'test/a.test.ts': importing,
    'test/b.ts': "export const path = 'src/c.ts';\n",
    'test/other.test.ts': passing,
    'src/c.ts': 'export {};\n',
  });
  linkModules(root);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const watching = spawn(process.execPath, [join(root, 'scripts/testing/watch.ts')], { cwd: root, env });
  t.after(() => watching.kill('SIGKILL'));
  let output = '';
  watching.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await until(() => output.includes('Waiting for a change'), 'it waits');
  for (const [file, text, runs] of [
    ['src/c.ts', 'export const c = 1;\n', 1],
    ['test/b.ts', "export const path = 'src/c.ts';\n\n", 2],
  ] as const) {
    writeFileSync(join(root, file), text);
    await until(() => output.split('1 passed, 0 failed').length === runs + 1, `run ${runs} of: ${output}`);
  }
  writeFileSync(join(root, 'src/notes.md'), 'read by no test\n');
  await until(() => output.includes('No test file imports src/notes.md'), 'it says so');
  assert.ok(!output.includes('other.test.ts'));
  watching.kill('SIGINT');
  assert.deepEqual(await once(watching, 'close'), [0, null]);
});

function runTests(t: TestContext, files: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const root = makeTree(t, { ...runner, ...files });
  linkModules(root);
  // Node refuses to start a runner inside a test file when it finds this variable.
  const { NODE_TEST_CONTEXT: _, ...outside } = process.env;
  const env = { ...outside, COMITY_PORT: '1', COMITY_FUZZ_SECONDS: '7' };
  const result = spawnSync(process.execPath, [join(root, 'scripts/test.ts'), ...args], {
    cwd: root,
    env,
    encoding: 'utf8',
  });
  return { ...result, lastLine: result.stdout.trimEnd().split('\n').at(-1) };
}

test('the runner ends with the real totals and succeeds when all passed', (t) => {
  const run = runTests(t, {
    'test/a.test.ts': passing,
    'test/deep/b.test.ts': passing + skipping.split('\n')[1],
  });
  assert.equal(run.lastLine, '2 passed, 0 failed');
  assert.match(run.stdout, /^ℹ tests 3\n(?:.*\n)*ℹ pass 2\nℹ fail 0\n/m);
  assert.match(run.stdout, /^✔ test\/a\.test\.ts \(1 tests, \d+ ms\)$/m);
  assert.equal(run.status, 0);
});

test('the runner counts a failed test and a file that cannot be loaded, and fails', (t) => {
  const run = runTests(t, {
    'test/a.test.ts': passing + failing.split('\n')[1],
    'test/b.test.ts': "import './missing.ts';\n",
  });
  assert.equal(run.lastLine, '1 passed, 2 failed');
  assert.match(run.stdout, /Error: broken/);
  assert.equal(run.status, 1);
});

test('the runner counts a file without a test as failed', (t) => {
  const run = runTests(t, { 'test/a.test.ts': passing, 'test/b.test.ts': 'export const a = 1;\n' });
  assert.equal(run.lastLine, '1 passed, 1 failed');
  assert.match(run.stdout, /^✖ test\/b\.test\.ts \(0 tests, .*\n {2}the file has no tests$/m);
  assert.equal(run.status, 1);
});

test('the runner fails when every test was skipped', (t) => {
  const run = runTests(t, { 'test/a.test.ts': skipping });
  assert.equal(run.lastLine, '0 passed, 0 failed');
  assert.equal(run.status, 1);
});

test('the runner ends a test that hangs and tells it', (t) => {
  const hanging =
    "import { test } from 'node:test';\ntest('hangs', () => new Promise((done) => setTimeout(done, 3000)));\n";
  const run = runTests(t, { 'test/a.test.ts': hanging }, '--minutes', '0.005');
  assert.equal(run.lastLine, '0 passed, 1 failed');
  assert.match(run.stdout, /✖ hangs \(\d+ ms\)\n {2}'test did not finish before its parent/);
});

test('the runner ends a file that leaves something open, and says what', (t) => {
  const leaking = `${passing}setInterval(() => {}, 1000);\n`;
  const run = runTests(t, { 'test/a.test.ts': leaking, 'test/b.test.ts': passing });
  assert.match(run.stdout, /^✖ test\/a\.test\.ts .*\n {2}the file leaves open: Timeout$/m);
  assert.equal(run.lastLine, '2 passed, 1 failed');
  assert.equal(run.status, 1);
});

for (const [when, at, lastLine] of [
  [
    'while a test runs',
    "test('waits', async () => { throwing(); await new Promise((done) => setTimeout(done, 1000)); });",
    '1 passed, 4 failed',
  ],
  ['after its last test', "test('passes', () => { throwing(); });", '5 passed, 4 failed'],
] as const) {
  test(`the runner fails a file in which nothing catches an error ${when}, and goes on`, (t) => {
    const throwing = `import { test } from 'node:test';
const throwing = () => void setTimeout(() => { throw new Error('broken'); }, 1);
${at}
`;
    const rejecting = throwing.replace(
      "{ throw new Error('broken'); }",
      "Promise.reject(new Error('broken'))",
    );
    const files = { 'test/a.test.ts': throwing, 'test/b.test.ts': rejecting, 'test/c.test.ts': passing };
    const full = { 'test/full/a.test.ts': throwing, 'test/full/b.test.ts': rejecting };
    const run = runTests(t, { ...files, ...full }, '--full');
    assert.equal(run.lastLine, lastLine, run.stdout);
    for (const file of ['test/a', 'test/b', 'test/full/a', 'test/full/b'])
      assert.match(
        run.stdout,
        new RegExp(`nothing caught an error .*\\n +Error: broken\\n[^✔✖]*✖ ${file}\\.test\\.ts`),
      );
    assert.equal(run.status, 1);
  });
}

test('the runner runs what is measured last, one file at a time', (t) => {
  const slow = `import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
test('takes its time', async () => {
  const name = basename(import.meta.filename, '.test.ts');
  appendFileSync('order.txt', name + ' ');
  await new Promise((done) => setTimeout(done, 100));
  appendFileSync('order.txt', name + ' ');
});
`;
  const files = { 'test/full/measured/a.test.ts': slow, 'test/full/measured/b.test.ts': slow };
  const last = `import { readFileSync } from 'node:fs';
import { test } from 'node:test';
test('reads', () => { if (readFileSync('order.txt', 'utf8') !== 'z z a a b b ') throw new Error('beside others'); });
`;
  const run = runTests(
    t,
    { ...files, 'test/z.test.ts': slow, 'test/full/measured/c.test.ts': last },
    '--full',
  );
  assert.equal(run.lastLine, '4 passed, 0 failed', run.stdout);
});

test('the runner goes on in another process after a file that ends its own or never gives it back', (t) => {
  const blocking = "import { test } from 'node:test';\ntest('blocks', () => { for (;;); });\n";
  const grace = runner['scripts/testing/run-files.ts']?.replace('graceMs = 10_000', 'graceMs = 1_000') ?? '';
  const run = runTests(
    t,
    {
      'scripts/testing/run-files.ts': grace,
      'test/a.test.ts': "import { test } from 'node:test';\ntest('exits', () => process.exit(0));\n",
      'test/b.test.ts': blocking,
      'test/c.test.ts': passing,
    },
    '--minutes',
    '0.02',
  );
  assert.match(run.stdout, /^✖ test\/a\.test\.ts .*\n {2}the process ended with 0$/m);
  assert.match(run.stdout, /^✖ test\/b\.test\.ts .*\n {2}no test ended within 2\.2 s of its beginning$/m);
  assert.equal(run.lastLine, '1 passed, 2 failed');
});

test('a failed test is shown with its last exchanges with a server', (t) => {
  const asking =
    "import { channel } from 'node:diagnostics_channel';\nimport { test } from 'node:test';\n" +
    "test('asks', () => { channel('comity:exchange').publish('GET /'); throw new Error('broken'); });\n";
  assert.match(runTests(t, { 'test/a.test.ts': asking }).stdout, /the last exchanges:\n\s+GET \/\n/);
});

test('paths select files and folders; the full tier and the soak tests have to be asked for', (t) => {
  const files = {
    'test/a.test.ts': passing,
    'test/b/c.test.ts': passing,
    'test/full/e.test.ts': passing,
    'test/soak/d.test.ts': failing,
  };
  assert.equal(runTests(t, files).lastLine, '2 passed, 0 failed');
  assert.equal(runTests(t, files, '--full').lastLine, '3 passed, 0 failed');
  assert.equal(runTests(t, files, 'test/b').lastLine, '1 passed, 0 failed');
  assert.equal(runTests(t, files, './test/a.test.ts', 'test/soak').lastLine, '1 passed, 1 failed');
  assert.equal(runTests(t, files, 'test/b/c').status, 1);
});

test('a test does not see the configuration of the shell, except what steers tests', (t) => {
  const looking =
    "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\n" +
    "test('looks', () => assert.deepEqual([process.env.COMITY_PORT, process.env.COMITY_FUZZ_SECONDS], [undefined, '7']));\n";
  assert.equal(runTests(t, { 'test/a.test.ts': looking }).lastLine, '1 passed, 0 failed');
});
