/**
 * A failover to a server without the last commits, under followers of two programs that keep a copy by docs/guides/follow-changes.md: after
 * it each copy is what a list shows, because a follower sees every later event or is told to read its lists again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import WebSocket from 'ws';
import { base } from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const headers = { Authorization: `Bearer ${adminKey}` };
const path = `${base}/categories`;
const pauseMs = 20;
/** The pauses of connections grow to two seconds meanwhile, so that they come back in any order. */
const downMs = 2500;
const perWriter = 15;

type EventMessage = { readonly type: string; readonly data: { readonly object: Shown } };
type Shown = { readonly id: string; readonly name: string };

/** A copy of the categories, and the place up to which it was brought. */
class Copy {
  readonly name: string;
  readonly #url: string;
  readonly #names = new Map<string, string>();
  resets = 0;
  place = '';

  constructor(name: string, url: string) {
    this.name = name;
    this.#url = url;
  }

  get names(): readonly string[] {
    return [...this.#names.values()].toSorted();
  }

  async readList(): Promise<void> {
    const { names, place } = await untilAnswered(() => listOf(this.#url));
    this.#names.clear();
    for (const [id, name] of names) this.#names.set(id, name);
    this.place = place;
  }

  apply({ type, data: { object } }: EventMessage): void {
    if (type === 'categories.deleted') this.#names.delete(object.id);
    else this.#names.set(object.id, object.name);
  }

  async reset(): Promise<void> {
    this.resets += 1;
    await this.readList();
  }
}

async function listOf(url: string): Promise<{ names: ReadonlyMap<string, string>; place: string }> {
  const answer = await fetch(`${url}${path}?limit=1000`, { headers });
  assert.equal(answer.status, 200);
  const { items } = (await answer.json()) as { items: readonly Shown[] };
  return {
    names: new Map(items.map(({ id, name }) => [id, name])),
    place: answer.headers.get('comity-position') ?? '',
  };
}

/** As a client does: again, while the program has no database. */
async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  for (let left = 1000; ; left -= 1) {
    try {
      return await ask();
    } catch (error) {
      if (left === 0) throw error;
      await delay(pauseMs);
    }
  }
}

/** One connection or request; resolves when it ended, however. */
type Follow = (url: string, copy: Copy, signal: AbortSignal) => Promise<void>;

const poll: Follow = async (url, copy, signal) => {
  const query = `after=${encodeURIComponent(copy.place)}&limit=7`;
  const waiting = { ...headers, Prefer: 'wait=1' };
  const answer = await fetch(`${url}${base}/events?${query}`, { headers: waiting, signal });
  if (answer.status === 410) await copy.reset();
  if (answer.status !== 200) return void (await answer.text());
  const { items, nextCursor } = (await answer.json()) as { items: EventMessage[]; nextCursor: string };
  for (const event of items) copy.apply(event);
  copy.place = nextCursor;
};

const stream: Follow = async (url, copy, signal) => {
  const answer = await fetch(`${url}${base}/events?after=${encodeURIComponent(copy.place)}`, {
    headers: { ...headers, Accept: 'text/event-stream' },
    signal,
  });
  if (answer.status !== 200) return void (await answer.text());
  let text = '';
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString();
    const messages = text.split('\n\n');
    text = messages.pop() ?? '';
    for (const message of messages) {
      const [, id] = /^id: (.*)$/m.exec(message) ?? [];
      const [, data] = /^data: (.*)$/m.exec(message) ?? [];
      if (data === undefined) continue;
      if (/^event: reset$/m.test(message)) return copy.reset();
      copy.apply(JSON.parse(data) as EventMessage);
      copy.place = id ?? copy.place;
    }
  }
};

const socket: Follow = async (url, copy, signal) => {
  const client = new WebSocket(`${url.replace('http', 'ws')}${base}/realtime`, 'comity.v1', { headers });
  const leave = (): void => client.terminate();
  signal.addEventListener('abort', leave);
  const ended = Promise.withResolvers<boolean>();
  client.on('error', () => ended.resolve(false));
  client.on('close', () => ended.resolve(false));
  client.on('open', () => client.send(JSON.stringify({ subscribe: ['categories.*'], after: copy.place })));
  client.on('message', (data) => {
    const frame = JSON.parse(String(data)) as { event?: EventMessage & { id: string }; reset?: unknown };
    if (frame.reset !== undefined) ended.resolve(true);
    if (frame.event === undefined) return;
    copy.apply(frame.event);
    copy.place = frame.event.id;
  });
  const isReset = await ended.promise;
  client.removeAllListeners('message');
  client.terminate();
  signal.removeEventListener('abort', leave);
  if (isReset) await copy.reset();
};

/** A poll that learns of a loss lets its program look for it at once: the first program has none. */
const waysOfPrograms: readonly Readonly<Record<string, Follow>>[] = [
  { stream, socket },
  { poll, stream, socket },
];

async function followUntil(follow: Follow, url: string, copy: Copy, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await follow(url, copy, signal).catch(() => undefined);
    if (!signal.aborted) await delay(pauseMs);
  }
}

async function write(programs: readonly RunningServer[], name: string): Promise<void> {
  await Promise.all(
    programs.map(async (program, at) => {
      for (let index = 0; index < perWriter; index += 1) {
        let tries = 0;
        await untilAnswered(async () => {
          tries += 1;
          const json = { name: `${name} ${at} ${index} ${tries}` };
          assert.equal((await program.send('POST', path, { json })).status, 201);
        });
      }
    }),
  );
}

test('followers of two programs keep a true copy over failovers that lose commits', async (t) => {
  const cluster = await ownCluster();
  const env = {
    COMITY_DATABASE_URL: cluster.url,
    COMITY_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
  };
  const programs = [await startServer({ env }), await startServer({ env })];
  const over = new AbortController();
  const following: Promise<void>[] = [];
  t.after(async () => {
    over.abort();
    await Promise.all(following);
    for (const program of programs) await program.stop();
    await cluster.dispose();
  });
  const begin = async (follow: Follow, name: string, at: number): Promise<Copy> => {
    const url = programs[at]?.url ?? '';
    const copy = new Copy(`${name} of program ${at}`, url);
    await copy.readList();
    const start = (): void => void following.push(followUntil(follow, url, copy, over.signal));
    if (name.startsWith('late')) late.push(start);
    else start();
    return copy;
  };
  const late: (() => void)[] = [];
  const truth = async (): Promise<readonly string[]> =>
    [...(await untilAnswered(() => listOf(programs[0]?.url ?? ''))).names.values()].toSorted();
  const untilTrue = async (copies: readonly Copy[], when: string): Promise<void> => {
    for (const copy of copies) {
      let shown: readonly string[] = [];
      const isTrue = async (): Promise<boolean> => {
        shown = await truth();
        return copy.names.join() === shown.join();
      };
      await until(isTrue, `${copy.name} is true ${when}`).catch(() =>
        assert.deepEqual(copy.names, shown, `${copy.name} ${when}, told ${copy.resets} times`),
      );
    }
  };
  const copies: Copy[] = [];
  await write(programs, 'kept');
  await cluster.stop();
  await cluster.save();
  await cluster.start();
  // These hold a place that is kept, and begin to follow from it after the failover.
  const lateCopies: Copy[] = [];
  for (const [at, ways] of waysOfPrograms.entries()) {
    for (const [name, follow] of Object.entries(ways)) {
      copies.push(await begin(follow, name, at));
      lateCopies.push(await begin(follow, `late ${name}`, at));
    }
  }
  for (const [round, mode] of (['immediate', 'fast'] as const).entries()) {
    await write(programs, `lost ${round}`);
    await untilTrue(copies, `before failover ${round}`);
    const resets = copies.map((copy) => copy.resets);
    await cluster.stop(mode);
    await cluster.load();
    await delay(downMs);
    await cluster.start();
    await write(programs, `later ${round}`);
    if (round === 0) for (const start of late) start();
    await untilTrue([...copies, ...lateCopies], `after failover ${round}`);
    for (const [at, copy] of copies.entries()) {
      assert.equal(copy.resets, (resets[at] ?? 0) + 1, `${copy.name} is told once`);
    }
    if (round === 0) for (const copy of lateCopies) assert.equal(copy.resets, 0, `${copy.name} lost nothing`);
  }
});
