/**
 * What streams and WebSockets say of documents that leave a reader's sight, or enter it, because a document that they refer to changed or was
 * deleted (§6.14): one message for all of them, to those alone who could read one.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  asAdministrator,
  base,
  bearer,
  type Client,
  openClient,
  register,
} from '../../harness/account-client.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { createFollowers, type Heard } from '../../harness/event-followers.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../fixtures/leaving-parents.config.ts', import.meta.url));

type Headers = Readonly<Record<string, string>>;

/** What a follower got, without the events of documents that end a test. */
function messagesOf(heard: readonly Heard[]): unknown[] {
  return heard.map(({ event, data }) => {
    const { left, entered } = JSON.parse(data);
    return left === undefined && entered === undefined ? event : { [event]: left ?? entered };
  });
}

function framesOf(frames: readonly string[]): unknown[] {
  return frames.slice(1).map((frame) => {
    const { event, ...message } = JSON.parse(frame);
    return event === undefined ? message : event.type;
  });
}

for (const engine of engineNames) {
  describe(`leaving with a parent on ${engine}`, () => {
    const start = serversOn(engine, config);
    let program: RunningServer;
    let client: Client;
    let customer: string;
    const followers = createFollowers(() => program);
    const people: Record<'ada' | 'bob', { readonly id: string; readonly headers: Headers }> = {
      ada: { id: '', headers: {} },
      bob: { id: '', headers: {} },
    };

    before(async () => {
      program = await start({ COMITY_CASCADE_MAX: '100', COMITY_REALTIME_ATTEMPT_MS: '0' });
      client = openClient(program.port);
      for (const name of ['ada', 'bob'] as const) {
        const { token, userId } = await register(client, `${name}@parents.example`, 'correct horse battery');
        people[name] = { id: userId, headers: bearer(token) };
      }
      customer = await write('POST', 'customers', { userId: 'nobody' });
    });

    after(() => {
      followers.close();
      client.close();
    });

    async function write(method: string, path: string, json?: unknown): Promise<string> {
      const answer = await client.ask(method, `${base}/${path}`, {
        headers: asAdministrator,
        ...(json === undefined ? {} : { json }),
      });
      assert.ok(answer.status < 300, `${answer.status} ${answer.body}`);
      return method === 'DELETE' ? '' : String(answer.json().id);
    }

    const ticketOf = (userId: string, isOpen = true): Promise<string> =>
      write('POST', 'tickets', { customerId: customer, userId, isOpen });
    const child = (collection: string, ticketId: string): Promise<string> =>
      write('POST', collection, { text: 'x', ticketId });

    /** Follows as Ada and as Bob, over both transports, does something, and returns what each got of it. */
    async function heardOf(work: () => Promise<unknown>): Promise<Record<'ada' | 'bob', unknown[]>> {
      const all: { name: 'ada' | 'bob'; heard: Heard[]; frames: string[]; begin: string }[] = [];
      for (const name of ['ada', 'bob'] as const) {
        const { headers } = people[name];
        const heard = await followers.stream(headers);
        const frames = await followers.socket(headers);
        all.push({ name, heard, frames, begin: await markFor(name) });
      }
      /** What comes before an event that a follower got has been judged. */
      const whenGot = async (mark: string, heard: Heard[], frames: string[]): Promise<void> => {
        await until(() => heard.some(({ data }) => data.includes(mark)), 'the stream has the event');
        await until(() => frames.some((frame) => frame.includes(mark)), 'the socket has the event');
      };
      for (const { heard, frames, begin } of all) await whenGot(begin, heard, frames);
      await work();
      const got: Record<'ada' | 'bob', unknown[]> = { ada: [], bob: [] };
      for (const { name, heard, frames, begin } of all) {
        await whenGot(await markFor(name), heard, frames);
        const first = heard.findIndex(({ data }) => data.includes(begin)) + 1;
        got[name] = messagesOf(heard).slice(first, -1);
        const firstFrame = frames.findIndex((frame) => frame.includes(begin));
        assert.deepEqual(framesOf(frames).slice(firstFrame, -1), got[name], 'a socket tells the same');
      }
      return got;
    }

    let keeping: string | undefined;
    /** Writes a remark that the person alone reads. @returns its id */
    async function markFor(name: keyof typeof people): Promise<string> {
      keeping ??= await ticketOf('nobody');
      return write('POST', 'remarks', { text: 'end', ticketId: keeping, author: people[name].id });
    }

    const lastEvent = async (): Promise<string> => {
      const answer = await client.ask('GET', `${base}/events?sort=-id&limit=1`, { headers: asAdministrator });
      return String((answer.json().items as { id: string }[])[0]?.id);
    };

    test('a change of a parent tells the former reader of its children once, the new one that they entered, and others nothing', async () => {
      const ticket = await ticketOf(people.ada.id);
      for (let count = 0; count < 3; count += 1) await child('comments', ticket);
      const without = await ticketOf(people.ada.id);
      const heard = await heardOf(async () => {
        await write('PATCH', `tickets/${ticket}`, { userId: people.bob.id });
        await write('PATCH', `tickets/${without}`, { userId: people.bob.id });
      });
      const comments = { collection: 'comments', where: { ticketId: ticket } };
      assert.deepEqual(heard, { ada: [{ left: comments }], bob: [{ entered: comments }] });
    });

    test('a change of a parent that leaves the answer of a rule as it was tells nothing', async () => {
      const ticket = await ticketOf(people.ada.id);
      const closed = await ticketOf(people.ada.id, false);
      await child('comments', ticket);
      await child('comments', closed);
      const heard = await heardOf(async () => {
        await write('PATCH', `tickets/${ticket}`, {
          customerId: await write('POST', 'customers', { userId: 'x' }),
        });
        // Two conditions of one rule, of which one did not hold before and does not after.
        await write('PATCH', `tickets/${closed}`, { userId: people.bob.id });
      });
      assert.deepEqual(heard, { ada: [], bob: [] });
    });

    test('some of the children left: those that the reader sees by another part of the rule stay', async () => {
      const [mixed, own] = [await ticketOf(people.ada.id), await ticketOf(people.ada.id)];
      for (const [ticketId, author] of [
        [mixed, people.ada.id],
        [mixed, 'nobody'],
        [own, people.ada.id],
      ])
        await write('POST', 'remarks', { text: 'x', ticketId, author });
      const heard = await heardOf(async () => {
        await write('PATCH', `tickets/${mixed}`, { userId: 'nobody' });
        await write('PATCH', `tickets/${own}`, { userId: 'nobody' });
      });
      const left = { collection: 'remarks', where: { ticketId: mixed }, some: true };
      assert.deepEqual(heard, { ada: [{ left }], bob: [] });
    });

    test('a reference that the reader may not know is not named, nor a parent several references away', async () => {
      const client1 = await write('POST', 'customers', { userId: people.ada.id });
      const ticket = await write('POST', 'tickets', {
        ...{ customerId: client1, userId: people.ada.id, isOpen: true },
      });
      await child('hidden', ticket);
      await child('trails', ticket);
      const heard = await heardOf(async () => {
        await write('PATCH', `tickets/${ticket}`, { userId: people.bob.id });
        await write('PATCH', `customers/${client1}`, { userId: people.bob.id });
      });
      assert.deepEqual(heard, {
        ada: [{ left: { collection: 'hidden', some: true } }, { left: { collection: 'trails', some: true } }],
        bob: [{ entered: { collection: 'hidden' } }, { entered: { collection: 'trails' } }],
      });
    });

    test('a move between parents, one reference away, tells of the children beyond', async () => {
      const [hers, his] = [
        await write('POST', 'customers', { userId: people.ada.id }),
        await write('POST', 'customers', { userId: people.bob.id }),
      ];
      const ticket = await write('POST', 'tickets', { customerId: hers, userId: 'nobody', isOpen: true });
      await child('trails', ticket);
      const heard = await heardOf(() => write('PATCH', `tickets/${ticket}`, { customerId: his }));
      const trails = { collection: 'trails', where: { ticketId: ticket } };
      assert.deepEqual(heard, { ada: [{ left: trails }], bob: [{ entered: trails }] });
    });

    test('a deletion tells of the children that went with it or lost the reference, at any depth, and a refused one nothing', async () => {
      const hers = await write('POST', 'customers', { userId: people.ada.id });
      const ticket = await write('POST', 'tickets', {
        customerId: hers,
        userId: people.ada.id,
        isOpen: true,
      });
      const other = await write('POST', 'tickets', { customerId: hers, userId: people.ada.id, isOpen: true });
      await child('comments', ticket);
      await child('notes', ticket);
      await child('trails', other);
      const held = await ticketOf(people.ada.id);
      await child('marks', held);
      const bare = await ticketOf(people.ada.id);
      const heard = await heardOf(async () => {
        const refused = await client.ask('DELETE', `${base}/tickets/${held}`, { headers: asAdministrator });
        assert.equal(refused.status, 409);
        await write('DELETE', `tickets/${bare}`);
        await write('DELETE', `customers/${hers}`);
      });
      const left = (collection: string, ticketId: string) => ({ left: { collection, where: { ticketId } } });
      const sorted = (messages: unknown[]) => messages.map((each) => JSON.stringify(each)).sort();
      assert.deepEqual(
        sorted(heard.ada),
        sorted([left('comments', ticket), left('notes', ticket), left('trails', other)]),
      );
      assert.deepEqual(heard.bob, []);
    });

    test('a deletion as an operation beyond the bound of one unit tells of the children too', async () => {
      const ticket = await ticketOf(people.ada.id);
      const items = Array.from({ length: 150 }, () => ({ text: 'x', ticketId: ticket }));
      const made = await client.ask('POST', `${base}/comments/bulk`, {
        headers: asAdministrator,
        json: { items },
      });
      assert.equal(made.status, 200, made.body);
      const heard = await followers.stream(people.ada.headers);
      const answer = await client.ask('DELETE', `${base}/tickets/${ticket}`, { headers: asAdministrator });
      assert.equal(answer.status, 202);
      const left = JSON.stringify({ left: { collection: 'comments', where: { ticketId: ticket } } });
      await until(() => heard.some(({ data }) => data === left), 'the rest left');
      const others = heard.filter(({ event }) => event !== 'left');
      // Those that were judged while the ticket was there.
      assert.ok(others.every(({ event }) => event === 'comments.deleted'));
    });

    test('types, patterns and the id of a document hold for the children', async () => {
      const ticket = await ticketOf(people.ada.id);
      const [one, other] = [await child('comments', ticket), await child('notes', ticket)];
      const { headers } = people.ada;
      const streams = {
        comments: await followers.stream(headers, '?type=comments.updated'),
        deleted: await followers.stream(headers, '?type=comments.deleted'),
        one: await followers.stream(headers, `?data.object.id=${one}`),
        none: await followers.stream(headers, '?data.object.id=none'),
        notOther: await followers.stream(headers, `?data.object.id[ne]=${other}&type[ne]=tickets.updated`),
      };
      const sockets = {
        notes: await followers.socket(headers, undefined, ['notes.updated']),
        marks: await followers.socket(headers, undefined, ['marks.*']),
        twice: await followers.socket(headers, undefined, ['comments.*', 'comments.updated', 'notes.*']),
      };
      const heard = await heardOf(() => write('PATCH', `tickets/${ticket}`, { userId: 'nobody' }));
      const comments = { left: { collection: 'comments', where: { ticketId: ticket } } };
      const notes = { left: { collection: 'notes', where: { ticketId: ticket } } };
      assert.deepEqual(heard.ada, [comments, notes]);
      for (const name of ['comments', 'one', 'notOther'] as const)
        await until(() => streams[name].some(({ event }) => event === 'left'), `${name} hears`);
      // A socket begins where its process is, and may get events of what was written just before.
      const told = (frames: string[]) => framesOf(frames).filter((each) => typeof each !== 'string');
      await until(() => told(sockets.twice).length === 2, 'both kinds');
      await until(() => told(sockets.notes).length === 1, 'notes');
      assert.deepEqual(messagesOf(streams.comments), [comments]);
      assert.deepEqual(messagesOf(streams.one), [comments]);
      assert.deepEqual(messagesOf(streams.notOther.filter(({ event }) => event === 'left')), [comments]);
      assert.deepEqual([streams.deleted, streams.none], [[], []]);
      assert.deepEqual(told(sockets.twice), [comments, notes]);
      assert.deepEqual(told(sockets.notes), [notes]);
      assert.deepEqual(told(sockets.marks), []);
    });

    test('followers that resume get it too, also of children that changed since, and nothing of those that came after', async () => {
      const ticket = await ticketOf(people.ada.id);
      const [changed, empty] = [await child('comments', ticket), await ticketOf(people.ada.id)];
      const begin = await lastEvent();
      await write('PATCH', `tickets/${ticket}`, { userId: 'nobody' });
      await write('PATCH', `tickets/${empty}`, { userId: 'nobody' });
      await write('PATCH', `comments/${changed}`, { text: 'later' });
      await child('comments', empty);
      const comments = { left: { collection: 'comments', where: { ticketId: ticket } } };
      const end = await markFor('ada');
      const { headers } = people.ada;
      const heard = await followers.stream({ ...headers, 'Last-Event-ID': begin });
      await until(() => heard.some(({ data }) => data.includes(end)), 'resumed');
      assert.deepEqual(messagesOf(heard), [comments, 'remarks.created']);
      const cold = await followers.socket(headers, begin);
      await until(() => cold.at(-1)?.includes(end) === true, 'from the log');
      const warm = await followers.socket(headers, begin);
      await until(() => warm.at(-1)?.includes(end) === true, 'from what the hub keeps, or the log');
      assert.deepEqual(
        [cold, warm].map(framesOf),
        [0, 1].map(() => [comments, 'remarks.created']),
      );
      // The message has the id of the event of the parent, after which a stream goes on.
      const [first] = heard;
      const again = await followers.stream({ ...headers, 'Last-Event-ID': String(first?.id) });
      await until(() => again.some(({ data }) => data.includes(end)), 'resumed after it');
      assert.deepEqual(messagesOf(again), ['remarks.created']);
    });
  });
}

/** Of several processes on one database, each tells its own followers. */
if (engineNames.includes('PostgreSQL')) {
  test('a process tells of a change that another process made', async (context) => {
    const database = await databaseOfProgram(config);
    const programs: RunningServer[] = [];
    const env = { COMITY_DATABASE_URL: database.url, COMITY_SECRET_KEY: 'ab'.repeat(32) };
    for (let count = 0; count < 2; count += 1) programs.push(await startServer({ config, env }));
    const [writing, telling] = programs;
    assert.ok(writing !== undefined && telling !== undefined);
    const followers = createFollowers(() => telling);
    const client = openClient(writing.port);
    context.after(async () => {
      followers.close();
      client.close();
      for (const program of programs) await program.stop();
      await database.dispose();
    });
    const { token, userId } = await register(client, 'ada@processes.example', 'correct horse battery');
    const write = async (method: string, path: string, json: unknown): Promise<string> => {
      const answer = await client.ask(method, `${base}/${path}`, { headers: asAdministrator, json });
      assert.ok(answer.status < 300, answer.body);
      return String(answer.json().id);
    };
    const customerId = await write('POST', 'customers', { userId: 'nobody' });
    const ticketId = await write('POST', 'tickets', { customerId, userId, isOpen: true });
    await write('POST', 'comments', { text: 'x', ticketId });
    const heard = await followers.stream(bearer(token));
    const frames = await followers.socket(bearer(token));
    await write('PATCH', `tickets/${ticketId}`, { isOpen: false });
    const left = JSON.stringify({ left: { collection: 'comments', where: { ticketId } } });
    await until(() => heard.some(({ data }) => data === left), 'the stream tells');
    await until(() => frames.includes(left), 'the socket tells');
  });
}
