/** `comity init`, as a process and then by npm: a project that installs, starts and answers as it was written. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { plainEnvironment, runCommand, spawnCommand } from '../../harness/command-line.ts';
import { fetching, nodePath, unreachable, whyUnreachable } from '../../harness/npm-install.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const npmBoundMs = 120_000;

/** For npm, also where the registry is reached through a proxy with a certificate of its own. */
function environmentOf(path: string): Environment {
  const { NODE_EXTRA_CA_CERTS } = process.env;
  return plainEnvironment({ PATH: path, ...(NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS }) });
}

function environmentWith(): Environment {
  return environmentOf(nodePath);
}

test('writes a project, installs, checks its types, tests itself, starts, and takes and gives a task', {
  timeout: 2 * npmBoundMs,
}, async (context) => {
  const project = join(temporaryFolder(), 'My Tasks');
  const written = await spawnCommand(['init', project, '--node', 'system']).ended;
  assert.equal(written.code, 0, written.stderr);
  assert.match(written.stdout, /npm install\n {2}npm run dev/);
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  assert.equal(manifest.name, 'my-tasks');
  assert.match(manifest.dependencies.comity, /^file:\//);
  assert.equal(manifest.optionalDependencies, undefined);

  const installed = await install(project, ['--prefer-offline'], environmentWith());
  if (unreachable.test(installed.output)) return context.skip(whyUnreachable);
  assert.equal(installed.code, 0, installed.output);
  const npm = (...args: string[]) =>
    spawnSync('npm', args, { cwd: project, env: environmentWith(), encoding: 'utf8' });
  assert.equal(npm('run', 'types').stdout.match(/error/)?.[0], undefined);
  const testFile = join(project, 'test/tasks.test.ts');
  const text = readFileSync(testFile, 'utf8');
  writeFileSync(testFile, text.replace('done: true', 'done: 1'));
  assert.match(npm('run', 'types').stdout, /test\/tasks\.test\.ts\(11,\d+\): error TS2322/);
  writeFileSync(testFile, text);
  const tested = npm('test');
  assert.equal(tested.status, 0, tested.stdout);
  assert.match(tested.stdout, /pass 1/);
  // What `npm start` serves is what the other commands speak of.
  writeFileSync(join(project, '.env'), 'COMITY_DATA=of-the-file\n');
  await serveATask(context, project, environmentWith());
  assert.ok(existsSync(join(project, 'of-the-file', 'comity.db')));
});

test('brings the Node of this repository, locked with its integrity and installed without any script', {
  timeout: 2 * npmBoundMs,
}, async (context) => {
  const project = join(temporaryFolder(), 'api');
  assert.equal((await runCommand(['init', project, '--node', 'npm'])).code, 0);
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const own = JSON.parse(readFileSync('scripts/node/package.json', 'utf8'));
  assert.deepEqual(manifest.optionalDependencies, own.optionalDependencies);
  assert.deepEqual([manifest.dependencies.node, manifest.allowScripts], [undefined, undefined]);

  // The Node of the tests is not on the path: what runs is what the machine has, or what the project brought.
  const { PATH = '' } = process.env;
  const outside = PATH.split(':').filter((folder) => !folder.includes('node_modules'));
  const environment = environmentOf(outside.join(':'));
  const installed = await install(project, ['--prefer-offline', '--ignore-scripts'], environment);
  if (unreachable.test(installed.output)) return context.skip(whyUnreachable);
  assert.equal(installed.code, 0, installed.output);
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'));
  for (const [name, version] of Object.entries(own.optionalDependencies)) {
    const locked = packages[`node_modules/${name}`];
    assert.equal(locked.version, version);
    assert.match(locked.integrity, /^sha512-/);
    assert.equal(locked.hasInstallScript, undefined, name);
  }
  const node = spawnSync(join(project, 'node_modules/.bin/node'), ['--version'], { encoding: 'utf8' });
  assert.equal(node.stdout.trim(), `v${own.version}`);
  await serveATask(context, project, environment);
});

test('writes into a folder that holds other files', async () => {
  const project = temporaryFolder();
  mkdirSync(join(project, '.git'));
  assert.equal((await spawnCommand(['init'], {}, { cwd: project }).ended).code, 0);
  assert.ok(existsSync(join(project, 'comity.config.ts')));
});

type Environment = Readonly<Record<string, string>>;

/** @returns npm's exit code and all that it said */
async function install(
  cwd: string,
  options: readonly string[],
  env: Environment,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const args = ['install', '--no-audit', '--no-fund', ...fetching, ...options];
  const npm = spawn('npm', args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: npmBoundMs });
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code] = await once(npm, 'close');
  return { code, output };
}

/** Runs `npm start`, writes a task and reads it, and stops the server with SIGTERM. */
async function serveATask(context: TestContext, cwd: string, environment: Environment): Promise<void> {
  const key = 'sk_test_0123456789abcdef0123456789';
  const server = spawn('npm', ['start'], {
    cwd,
    env: { ...environment, COMITY_PORT: '0', COMITY_ADMIN_KEY: key },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const endGroup = (): void => endProcesses(server.pid);
  process.once('exit', endGroup);
  context.after(endGroup);
  const url = await listeningUrl(server.stdout);
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ title: 'Water the plants' });
  const created = await fetch(`${url}/api/v1/tasks`, { method: 'POST', headers, body });
  assert.equal(created.status, 201);
  const { items } = (await (await fetch(`${url}/api/v1/tasks`)).json()) as {
    items: readonly { title: string }[];
  };
  assert.deepEqual(
    items.map(({ title }) => title),
    ['Water the plants'],
  );
  server.kill('SIGTERM');
  // Its output closes when npm and what npm started are both gone.
  await once(server, 'close');
}

async function listeningUrl(stdout: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stdout) {
    text += String(chunk);
    const url = /^comity listening on (\S+)$/m.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`did not start: ${text}`);
}

/** Ends npm and whatever it started, should the test have failed before they ended by themselves. */
function endProcesses(group: number | undefined): void {
  try {
    if (group !== undefined) process.kill(-group, 'SIGKILL');
  } catch {
    // All gone already.
  }
}
