/**
 * The proxies of deploy/ before two programs on one database, as their files stand there but for ports, files and names: one program after the
 * other is stopped and started again, and no request fails. It runs alone, because beside other tests a probe may come later than the delay of
 * the drain. What is not installed is skipped, and says so.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { cert } from '../../accounts/mail/certificate.ts';
import { adminKey } from '../../harness/exchange.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { freePort } from '../../wire/free-port.ts';
import { findCommand } from '../clients/command.ts';
import {
  caddy,
  haproxy,
  nginx,
  type ProxyProgram,
  type RunningProxy,
  startProxy,
} from '../clients/proxy-program.ts';

const proxies: readonly (readonly [file: string, ProxyProgram])[] = [
  ['nginx.conf', nginx],
  ['haproxy.cfg', haproxy],
  ['Caddyfile', caddy],
];

let url = '';
const programs: ServerProcess[] = [];

/** One program of two, at the port of its number. */
function startProgram(port: string): Promise<ServerProcess> {
  return spawnServer({
    env: {
      COMITY_DATABASE_URL: url,
      COMITY_PORT: port,
      COMITY_BEHIND_PROXY: 'on',
      COMITY_RATE_LIMIT_WRITES: '0',
      COMITY_RATE_LIMIT_READS: '0',
      COMITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
      // More than a proxy takes to look again, which is a second.
      COMITY_DRAIN_DELAY_SECONDS: '3',
    },
  });
}

before(async () => {
  ({ url } = await emptyDatabase());
  for (let number = 0; number < 2; number += 1) programs.push(await startProgram(String(await freePort())));
});

after(async () => {
  for (const program of programs) await program.kill();
});

for (const [file, proxy] of proxies) {
  const path = findCommand(proxy.command);
  const skip = path === undefined ? `${proxy.command} is not installed` : false;
  describe(`behind ${proxy.command}`, { skip }, () => {
    let running: RunningProxy;
    let port = 0;
    const dispatcher = new Agent({ allowH2: false, connect: { ca: cert } });

    before(async () => {
      const [one, other] = programs;
      const addresses = {
        '127.0.0.1:4001': `127.0.0.1:${one?.port}`,
        '127.0.0.1:4002': `127.0.0.1:${other?.port}`,
      };
      running = await startProxy(
        proxy,
        path ?? '',
        readFileSync(join('deploy', file), 'utf8'),
        addresses,
        (at) => {
          port = at;
          return ask('GET', '/health/ready').then(
            (status) => status === 200,
            () => false,
          );
        },
      );
    });

    after(async () => {
      await dispatcher.destroy();
      await running?.stop();
    });

    async function ask(method: 'GET' | 'POST', target: string): Promise<number> {
      const { statusCode, body } = await request(`https://localhost:${port}${target}`, {
        method,
        dispatcher,
        headers: { 'x-api-key': adminKey, 'content-type': 'application/json' },
        ...(method === 'POST' && { body: JSON.stringify({ name: `c${Math.random()}` }) }),
      });
      await body.dump();
      return statusCode;
    }

    test('no request fails while each program is stopped and started again', async () => {
      const outcomes = new Map<string, number>();
      let isOver = false;
      const client = async (method: 'GET' | 'POST', wanted: number): Promise<void> => {
        while (!isOver) {
          const outcome = await ask(method, '/api/v1/categories').catch((error: Error) => error.message);
          if (outcome !== wanted)
            outcomes.set(`${method} ${outcome}`, (outcomes.get(`${method} ${outcome}`) ?? 0) + 1);
          else outcomes.set('as wanted', (outcomes.get('as wanted') ?? 0) + 1);
          await delay(5);
        }
      };
      const clients = [client('GET', 200), client('GET', 200), client('POST', 201), client('POST', 201)];
      for (const [index, program] of programs.entries()) {
        assert.equal(await program.stop(), 0);
        await delay(500);
        programs[index] = await startProgram(String(program.port));
        // The proxy takes it back before the other one goes.
        await delay(6000);
      }
      isOver = true;
      await Promise.all(clients);
      const { size } = outcomes;
      assert.ok((outcomes.get('as wanted') ?? 0) > 200, JSON.stringify([...outcomes]));
      assert.equal(size, 1, JSON.stringify([...outcomes]));
    });
  });
}
