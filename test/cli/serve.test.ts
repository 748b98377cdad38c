/** What `comity serve` prints, and why it could not start; test/full/cli/serve.test.ts has it as a process. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../harness/command-line.ts';
import { adminKey as key } from '../harness/exchange.ts';
import { listen } from '../harness/listening.ts';
import { shopConfig, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

async function post(url: string, credential: string, body: unknown): Promise<Response> {
  const headers = { 'X-API-Key': credential, 'Content-Type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

test('never prints a key that it was given', async () => {
  const server = await startServer({ env: { COMITY_LOG_LEVEL: 'debug' } });
  assert.equal((await post(`${server.url}/api/v1/categories`, key, { name: 'One' })).status, 201);
  await server.stop();
  assert.ok(!`${server.stdout()}${server.stderr()}`.includes(key));
});

test('prints three commands that work as they stand', async () => {
  const server = await startServer();
  const commands = server.stdout().match(/^ {2}curl .*$/gm) ?? [];
  const statuses = await Promise.all(commands.map((command) => perform(command)));
  assert.deepEqual(statuses, [200, 201, 200]);
  await server.stop();
});

test('says in one line that its port is in use, and exits 1', async () => {
  const { port, close } = await listen(createServer());
  const environment = {
    COMITY_CONFIG: shopConfig,
    COMITY_DATA: join(temporaryFolder(), 'data'),
    COMITY_PORT: String(port),
    COMITY_LOG_LEVEL: 'error',
  };
  const { code, stdout, stderr } = await runCommand(['serve'], environment);
  await close();
  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(
    stderr,
    `comity: port ${port} on 127.0.0.1 is already in use; set COMITY_PORT to another, or to 0 for any free one\n`,
  );
});

test('says in one line that it cannot use its data folder, and exits 1', async () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  const environment = {
    COMITY_CONFIG: shopConfig,
    COMITY_DATA: join(file, 'data'),
    COMITY_PORT: '0',
    COMITY_LOG_LEVEL: 'error',
  };
  const { code, stdout, stderr } = await runCommand(['serve'], environment);
  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(
    stderr,
    `comity: the data folder ${join(file, 'data')} cannot be used: part of the path is a file\n`,
  );
});

/** Does what a printed curl command does, for machines without curl. */
async function perform(command: string): Promise<number> {
  const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, one, two, plain]) => one ?? two ?? plain ?? '',
  );
  const headers = new Headers();
  let method = 'GET';
  let body: string | null = null;
  let url = '';
  for (let at = words.indexOf('curl') + 1; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const next = words[at + 1] ?? '';
    if (word === '-H') {
      const [name = '', value = ''] = next.split(': ');
      headers.set(name, value.replace('$COMITY_ADMIN_KEY', key));
    } else if (word === '-X') method = next;
    else if (word === '-d') [body, method] = [next, method === 'GET' ? 'POST' : method];
    else url = word;
    if (word.startsWith('-')) at += 1;
  }
  return (await fetch(url, { method, headers, body })).status;
}
