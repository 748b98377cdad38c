/** The test file of the help desk, which its readers run by themselves, and what shows only of a program that is started again. */
import '../../../examples/help-desk/desk.test.ts';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Secret, TOTP } from 'otpauth';
import { runCommand } from '../../harness/command-line.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const config = path('../../../examples/help-desk/comity.config.ts');
const firstConfig = path('./fixtures/first-desk.config.ts');
const api = '/api/v1';
const password = 'correct horse battery';

test('the tickets of the first desk are migrated, and stand in a view for SQL tools', async () => {
  const folder = temporaryFolder();
  const first = await startServer({ config: firstConfig, folder });
  const put = await first.send('PUT', `${api}/organisations/lighthouse`, { json: { name: 'Lighthouse' } });
  assert.equal(put.status, 201, put.body);
  for (const priority of ['low', 'high']) {
    const ticket = {
      title: `A ${priority} one`,
      status: 'open',
      priority,
      contact: 'ada@lighthouse.example',
    };
    const made = await first.send('POST', `${api}/tickets`, {
      json: { ...ticket, organisationId: 'lighthouse' },
    });
    assert.equal(made.status, 201, made.body);
  }
  await first.stop();
  const dry = await runCommand(['migrate', '--dry-run', '-c', config, '--data', folder]);
  assert.equal(dry.code, 3, dry.stderr);
  assert.match(dry.stdout, /1-high-is-urgent/);
  const migrated = await runCommand(['migrate', '-c', config, '--data', folder]);
  assert.equal(migrated.code, 0, migrated.stderr);
  const server = await startServer({ config, folder });
  const listed = await server.send('GET', `${api}/tickets?sort=title&fields=title,priority`);
  assert.deepEqual(listed.json().items, [
    { title: 'A high one', priority: 'urgent' },
    { title: 'A low one', priority: 'normal' },
  ]);
  const database = new DatabaseSync(join(folder, 'comity.db'), { readOnly: true });
  const rows = database.prepare('SELECT title, organisation_id FROM view_tickets ORDER BY title').all();
  database.close();
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [
      { title: 'A high one', organisation_id: 'lighthouse' },
      { title: 'A low one', organisation_id: 'lighthouse' },
    ],
  );
  await server.stop();
});

test('an administrator of the desk can do nothing before a second factor is there', async (context) => {
  const server = await startServer({ config });
  context.after(() => server.stop());
  const email = 'boss@desk.example';
  const made = await post(server, 'auth/register', { email, password });
  const { token, user } = made as { token: string; user: { id: string } };
  const promoted = await server.send('PATCH', `${api}/users/${user.id}`, {
    json: { roles: ['administrator'] },
  });
  assert.equal(promoted.status, 200, promoted.body);
  const users = () =>
    server.send('GET', `${api}/users`, { anonymous: true, headers: { Authorization: `Bearer ${token}` } });
  const refused = await users();
  assert.deepEqual([refused.status, refused.json().code], [403, 'second_factor_enrolment_required']);
  const { enrolment, secret } = (await post(server, 'auth/second-factor/totp', { password }, token)) as {
    enrolment: string;
    secret: string;
  };
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  await post(server, 'auth/second-factor/totp/confirm', { enrolment, code }, token);
  assert.equal((await users()).status, 200);
});

async function post(server: RunningServer, at: string, json: object, token?: string): Promise<object> {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const answer = await server.send('POST', `${api}/${at}`, { anonymous: true, json, headers });
  assert.ok(answer.status < 300, answer.body);
  return answer.json();
}
