/** Actions under a rule over a resource that a reference names (§5.9), on both stores. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('./fixtures/related-actions.config.ts', import.meta.url));

for (const engine of engineNames) {
  describe(`actions under rules over references on ${engine}`, () => {
    let server: RunningServer;
    let ada: { readonly id: string; readonly headers: Readonly<Record<string, string>> };

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      server = await startServer({
        config,
        ...(database === undefined ? {} : { env: { COMITY_DATABASE_URL: database.url } }),
      });
      if (database !== undefined) after(() => database.dispose());
      const account = { email: 'ada@example.com', password: 'a long enough password' };
      const answer = await server.send('POST', '/api/v1/auth/register', { json: account, anonymous: true });
      const { token, user } = answer.json() as { token: string; user: { id: string } };
      ada = { id: user.id, headers: { Authorization: `Bearer ${token}` } };
    });

    after(() => server.stop());

    async function make(collection: string, json: object): Promise<string> {
      const answer = await server.send('POST', `/api/v1/${collection}`, { json });
      assert.equal(answer.status, 201, answer.body);
      return String(answer.json().id);
    }
    const give = async (ticket: string, customer: string): Promise<void> => {
      const answer = await server.send('PATCH', `/api/v1/tickets/${ticket}`, { json: { customer } });
      assert.equal(answer.status, 200, answer.body);
    };
    const act = (method: string, path: string) =>
      server.send(method, `/api/v1/comments/${path}`, { headers: ada.headers, anonymous: true });

    test('ask the resource that the document names, in functions and in objects', async () => {
      const ticket = await make('tickets', { title: 'shown', customer: 'nobody' });
      const comment = await make('comments', { text: 'x', ticketId: ticket });
      assert.equal((await act('POST', `${comment}/mark`)).status, 403);
      assert.equal((await act('GET', `${comment}/look`)).status, 200);
      await give(ticket, ada.id);
      assert.equal((await act('POST', `${comment}/mark`)).status, 200);
      await server.send('PATCH', `/api/v1/tickets/${ticket}`, { json: { title: 'hidden' } });
      assert.equal((await act('GET', `${comment}/look`)).status, 403);
    });

    test('commit nothing against another state of it than the one by which the caller was judged', async () => {
      const ticket = await make('tickets', { title: 'busy', customer: ada.id });
      const comments = await Promise.all(
        Array.from({ length: 20 }, (_, at) => make('comments', { text: `${at}`, ticketId: ticket })),
      );
      let isOver = false;
      const flips = (async () => {
        for (let flip = 0; !isOver; flip += 1) await give(ticket, flip % 2 === 0 ? 'bob' : ada.id);
      })();
      const answers = await Promise.all(comments.map((comment) => act('POST', `${comment}/mark`)));
      isOver = true;
      await flips;
      for (const { status, body } of answers) assert.ok(status === 200 || status === 403, body);
      const log = await server.send('GET', '/api/v1/events?limit=1000&sort=-id');
      type Told = { type: string; data: { object: Record<string, string> } };
      const events = (log.json().items as Told[]).toReversed();
      let customer = '';
      for (const { type, data } of events) {
        if (type.startsWith('tickets.') && data.object.id === ticket) customer = String(data.object.customer);
        if (type === 'comments.updated' && comments.includes(String(data.object.id)))
          assert.equal(customer, ada.id, `${data.object.id} was marked while the ticket was of ${customer}`);
      }
    });
  });
}
