/** `comity init`, as a process and then by npm: a project that installs, starts and answers as it was written. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { plainEnvironment, runCommand, spawnCommand, temporaryFolder } from '../../harness/command-line.ts';

const npmBoundMs = 120_000;

/** The Node that runs the tests before any other, as npm and the project's scripts look for one. */
function environmentWith(given: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const { PATH = '' } = process.env;
  return plainEnvironment({ PATH: `${dirname(process.execPath)}:${PATH}`, ...given });
}

test('writes a project, installs offline, starts, and takes and gives a task', {
  timeout: 2 * npmBoundMs,
}, async (context) => {
  const project = join(temporaryFolder(), 'My Tasks');
  const written = await spawnCommand(['init', project, '--node', 'system']).ended;
  assert.equal(written.code, 0, written.stderr);
  assert.match(written.stdout, /npm install\n {2}npm start/);
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  assert.equal(manifest.name, 'my-tasks');
  assert.match(manifest.dependencies.comity, /^file:\//);

  const install = spawn('npm', ['install', '--offline', '--no-audit', '--no-fund'], {
    cwd: project,
    env: environmentWith(),
    stdio: 'inherit',
    timeout: npmBoundMs,
  });
  assert.deepEqual(await once(install, 'close'), [0, null]);

  const server = spawn('npm', ['start'], {
    cwd: project,
    env: environmentWith({ COMITY_PORT: '0', COMITY_ADMIN_KEY: 'sk_test_0123456789abcdef0123456789' }),
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const endGroup = (): void => endProcesses(server.pid);
  process.once('exit', endGroup);
  context.after(endGroup);
  const url = await listeningUrl(server.stdout);
  const headers = { 'X-API-Key': 'sk_test_0123456789abcdef0123456789', 'Content-Type': 'application/json' };
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
  assert.ok(existsSync(join(project, 'data', 'comity.db')));
});

test('brings Node as an npm package when it was run so itself', async () => {
  const project = join(temporaryFolder(), 'api');
  assert.equal((await runCommand(['init', project, '--node', 'npm'])).code, 0);
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const own = JSON.parse(readFileSync('scripts/node/package.json', 'utf8'));
  assert.equal(manifest.dependencies.node, own.version);
  assert.deepEqual(manifest.allowScripts, { node: true });
});

test('writes into a folder that holds other files', async () => {
  const project = temporaryFolder();
  mkdirSync(join(project, '.git'));
  assert.equal((await spawnCommand(['init'], {}, { cwd: project }).ended).code, 0);
  assert.ok(existsSync(join(project, 'comity.config.ts')));
});

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
