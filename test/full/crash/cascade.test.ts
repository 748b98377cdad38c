/**
 * Deletions with dependants are killed at random moments (§4.7.6): one that fits into a unit is there whole or not at all, and a longer one
 * goes on after the restart and deletes each document once, on each store.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../../wire/logic/fixtures/cascade.config.ts', import.meta.url));
const rounds = roundsOf(1, 1);
const comments = 200;
const cascadeMax = 5;
/** Deletions in one unit that a kill may interrupt, each of so many documents. */
const tickets = 40;
const dependants = 4;

for (const engine of engineNames) {
  describe(engine, () => {
    let program: ServerProcess | undefined;
    let dispose: (() => Promise<void>) | undefined;
    const folder = temporaryFolder();
    after(async () => {
      await program?.kill();
      await dispose?.();
    });

    async function start(): Promise<ServerProcess> {
      if (engine === 'PostgreSQL' && dispose === undefined) {
        const database = await databaseOfProgram(config);
        dispose = () => database.dispose();
        env.COMITY_DATABASE_URL = database.url;
      }
      program = await spawnServer({ config, folder, env });
      return program;
    }
    const env: Record<string, string> = { COMITY_CASCADE_MAX: String(cascadeMax) };

    async function make(server: ServerProcess, collection: string, json: object): Promise<string> {
      const answer = await server.send('POST', `/api/v1/${collection}`, { json });
      assert.equal(answer.status, 201, answer.body);
      return String(answer.json().id);
    }

    async function commentsOf(server: ServerProcess, ticket: string): Promise<number> {
      const list = await server.send('GET', `/api/v1/comments?ticketId=${ticket}&limit=1000&fields=id`);
      return (list.json().items as unknown[]).length;
    }

    for (let round = 1; round <= rounds; round += 1) {
      test(`round ${round}: a long deletion goes on after a kill, and deletes each document once`, async () => {
        let server = await start();
        const ticket = await make(server, 'tickets', { subject: 'long' });
        const ids = new Set<string>();
        for (let made = 0; made < comments; made += 20) {
          const some = Array.from({ length: 20 }, (_, n) =>
            make(server, 'comments', { text: `${n}`, ticketId: ticket }),
          );
          for (const id of await Promise.all(some)) ids.add(id);
        }
        const accepted = await server.send('DELETE', `/api/v1/tickets/${ticket}`);
        assert.equal(accepted.status, 202, accepted.body);
        for (let kills = 0; kills < 2; kills += 1) {
          await pause(Math.random() * 30);
          await server.kill();
          server = await start();
          const { status } = await server.send('GET', `/api/v1/tickets/${ticket}`);
          if (status === 404) assert.equal(await commentsOf(server, ticket), 0);
        }
        const location = String(accepted.headers.location);
        await until(async () => (await server.send('GET', location)).status === 303);
        assert.equal((await server.send('GET', `/api/v1/tickets/${ticket}`)).status, 404);
        assert.equal(await commentsOf(server, ticket), 0);
        const events = await server.send('GET', '/api/v1/events?type=comments.deleted&limit=1000&sort=-id');
        const deleted = (events.json().items as { data: { object: { id: string } } }[])
          .map(({ data }) => data.object.id)
          .filter((id) => ids.has(id));
        assert.deepEqual([deleted.length, new Set(deleted).size], [comments, comments]);
        await server.kill();
      });

      test(`round ${round}: a deletion that fits into a unit is whole or not at all after a kill`, async () => {
        let server = await start();
        const made = await Promise.all(
          Array.from({ length: tickets }, async () => {
            const ticket = await make(server, 'tickets', { subject: 'short' });
            for (let n = 0; n < dependants; n += 1)
              await make(server, 'comments', { text: `${n}`, ticketId: ticket });
            return { ticket, article: await make(server, 'articles', { title: 't', ticketId: ticket }) };
          }),
        );
        const acknowledged = new Set<string>();
        let answered = 0;
        const deletions = made.map(async ({ ticket }) => {
          try {
            const { status } = await server.send('DELETE', `/api/v1/tickets/${ticket}`);
            answered += 1;
            if (status === 204) acknowledged.add(ticket);
          } catch {
            // Killed.
          }
        });
        const killAfter = Math.floor(Math.random() * tickets * 0.8);
        while (answered < killAfter) await pause(0);
        await server.kill();
        await Promise.all(deletions);
        server = await start();
        for (const { ticket, article } of made) {
          const isGone = (await server.send('GET', `/api/v1/tickets/${ticket}`)).status === 404;
          if (acknowledged.has(ticket)) assert.ok(isGone, ticket);
          assert.equal(await commentsOf(server, ticket), isGone ? 0 : dependants);
          const { ticketId } = (await server.send('GET', `/api/v1/articles/${article}`)).json();
          assert.equal(ticketId, isGone ? undefined : ticket);
        }
        await server.kill();
      });
    }
  });
}
