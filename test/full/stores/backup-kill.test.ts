/** Kills while a backup that an administrator asked for is copied (§4.21.4): the next process makes it, whole, and leaves nothing else. */
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../harness/command-line.ts';
import { adminKey } from '../../harness/exchange.ts';
import { shopConfig } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { eventually, until } from '../../harness/until.ts';

const path = '/api/v1/meta/backups';
const requests = 12;
const itemsPerRequest = 500;
const text = 'x'.repeat(8000);

test('a kill in the middle of the copy: the next process makes the backup, which holds every acknowledged write', async (t) => {
  const folder = temporaryFolder();
  const options = { folder, env: { COMITY_BODY_BYTES_MAX: String(64 * 1024 * 1024) } };
  const killed = await spawnServer(options);
  for (let request = 0; request < requests; request += 1) {
    const items = Array.from({ length: itemsPerRequest }, (_, at) => ({ text: `${request} ${at} ${text}` }));
    const { status, body } = await killed.send('POST', '/api/v1/notes/bulk', {
      json: { items, atomic: true },
    });
    assert.equal(status, 200, body.slice(0, 300));
  }
  const accepted = await killed.send('POST', path);
  assert.equal(accepted.status, 202, accepted.body);
  const backups = join(folder, 'backups');
  const names = (): readonly string[] => readdirSync(backups);
  await until(() => names().some((name) => name.includes('.db')), 'the copy begins');
  await killed.kill();
  const next = await spawnServer(options);
  t.after(() => next.kill());
  const location = String(accepted.headers.location);
  const end = await eventually(async () => {
    const answer = await next.send('GET', location);
    return answer.status === 200 && answer.json().status === 'pending' ? undefined : answer;
  }, 'the end of the backup');
  assert.equal(end.status, 303, end.body);
  const { file } = (await next.send('GET', String(end.headers.location))).json();
  assert.deepEqual(
    names().filter((name) => name.endsWith('.partial')),
    [],
  );
  const restored = join(temporaryFolder(), 'data');
  const environment = { COMITY_DATA: restored, COMITY_CONFIG: shopConfig };
  const { code, stderr } = await runCommand(['restore', join(backups, String(file))], environment);
  assert.equal(code, 0, stderr);
  copyFileSync(join(folder, 'secret.key'), join(restored, 'secret.key'));
  const copy = await spawnServer({ folder: restored, env: { COMITY_ADMIN_KEY: adminKey } });
  t.after(() => copy.kill());
  const counted = await copy.send('GET', '/api/v1/notes?limit=1', { headers: { Prefer: 'count=exact' } });
  assert.equal(counted.headers['x-total-count'], String(requests * itemsPerRequest));
});
