/**
 * Who tries addresses learns nothing: accounts that are not there, or cannot be logged in to, are refused in the same words, in the
 * same time and with the same work as a wrong password.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import {
  type Answer,
  asAdministrator,
  base,
  type Client,
  changeUser,
  openClient,
  register,
} from '../../harness/account-client.ts';
import { startUsersMailServer } from '../../harness/mail-server.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';

const email = 'ada@shop.example';
const password = 'correct horse battery staple';

const mail = await startUsersMailServer();
let program: ServerProcess;
let client: Client;

before(async () => {
  program = await spawnServer({
    env: {
      COMITY_SMTP_URL: mail.url,
      COMITY_LOGIN_ATTEMPTS: '0',
      COMITY_PASSWORD_MEMORY_KIBIBYTES: '19456',
      COMITY_PASSWORD_PASSES: '2',
      COMITY_RATE_LIMIT_READS: '0',
      COMITY_RATE_LIMIT_WRITES: '0',
    },
  });
  client = openClient(program.port);
  await register(client, email, password);
});

after(async () => {
  client?.close();
  await program?.stop();
});

describe('who is not there', () => {
  /** Of each kind; enough that the work of hashing is more than what the clock of the process can show. */
  const attempts = 14;
  /**
   * Of the fastest attempts, which other programs delay least. Without equal work the ratio would be above ten: a hash takes some 25 ms, an
   * answer without one less than 2.
   */
  const timeRatioMax = 4;
  /** Of the processor's time, which does not depend on who else runs; measured between 0.92 and 1.15. */
  const workRatioMax = 1.6;

  it('a login that cannot succeed takes as much time and work as one with a wrong password', async (context) => {
    const disabled = await register(client, 'disabled@shop.example', password);
    await changeUser(client, disabled.userId, { disabled: true });
    const bare = { email: 'bare@shop.example' };
    const made = await client.ask('POST', `${base}/users`, { json: bare, headers: asAdministrator });
    assert.equal(made.status, 201, made.body);
    const kinds = {
      'a wrong password': { email, password: 'wrong password' },
      'an unknown account': { email: 'nobody@shop.example', password },
      'a disabled account': { email: 'disabled@shop.example', password },
      'an account without a password': { ...bare, password },
      'a password that is too long': { email, password: 'x'.repeat(4000) },
    };
    const times = new Map<string, number[]>();
    const work = new Map<string, number>();
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      for (const [kind, json] of Object.entries(kinds)) {
        const [begun, worked] = [performance.now(), ticksOf(program)];
        const answer = await client.ask('POST', `${base}/auth/login`, { json });
        times.set(kind, [...(times.get(kind) ?? []), performance.now() - begun]);
        work.set(kind, (work.get(kind) ?? 0) + ticksOf(program) - worked);
        assert.deepEqual([answer.status, answer.json().code], [401, 'invalid_credentials'], kind);
      }
    }
    const reference = {
      time: Math.min(...(times.get('a wrong password') ?? [])),
      work: work.get('a wrong password') ?? 0,
    };
    for (const kind of Object.keys(kinds)) {
      const time = Math.min(...(times.get(kind) ?? [])) / reference.time;
      assert.ok(time < timeRatioMax && time > 1 / timeRatioMax, `${kind} takes ${time} of a wrong password`);
      context.diagnostic(`${kind}: ${time.toFixed(2)} of the time, ${work.get(kind)} ticks of work`);
      if (reference.work === 0) continue;
      const ratio = (work.get(kind) ?? 0) / reference.work;
      assert.ok(ratio < workRatioMax && ratio > 1 / workRatioMax, `${kind} is ${ratio} of the work`);
    }
  });

  it('is told in the same words, field by field', async () => {
    const login = (json: unknown) => client.ask('POST', `${base}/auth/login`, { json });
    const known = await login({ email, password: 'wrong password' });
    const unknown = await login({ email: 'nobody@shop.example', password: 'wrong password' });
    const comparable = ({ status, headers, body }: Answer) => ({
      status,
      body,
      fields: { ...headers, date: '' },
    });
    assert.deepEqual(comparable(unknown), comparable(known));
    for (const path of ['password-reset', 'verification']) {
      const [one, other] = await Promise.all(
        [email, 'nobody@shop.example'].map((to) =>
          client.ask('POST', `${base}/auth/${path}`, { json: { email: to } }),
        ),
      );
      assert.ok(one !== undefined && other !== undefined);
      assert.deepEqual(comparable(one), comparable(other), path);
    }
  });
});

/** Time that the processor spent on the program so far, in hundredths of a second; 0 where the system does not tell. */
function ticksOf({ process: { pid } }: ServerProcess): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}
