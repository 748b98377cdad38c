/**
 * What functions of an application cost: an empty hook against none, an action that writes two documents against the two writes, and
 * events that a subscriber handles against received webhooks that a handler does, each from the first request to the last one handled.
 */
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { type Spread, spreadOf } from '../cell.ts';
import { adminKey, environmentAt } from '../engine.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { sumOf } from '../received/program.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { spreadText, verdict } from '../table.ts';
import { functionLeast } from '../targets.ts';
import { secret, secretKey } from '../webhooks/sent-events.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const note = JSON.stringify({ text: 'Enamelled kettle, 1.5 litres, in the colours of the season', count: 3 });

type Sent = { readonly path: string; readonly body: string; readonly headers: Record<string, string> };
/** @returns the next requests that belong together */
type Source = () => readonly Sent[];

const own = { 'X-API-Key': adminKey, 'Content-Type': 'application/json' };
const post = (path: string): Sent => ({ path: `/api/v1/${path}`, body: note, headers: own });

let messages = 0;

function signedMessage(): Sent {
  messages += 1;
  const [id, time] = [`msg_${process.pid}_${messages}`, String(Math.floor(Date.now() / 1000))];
  const body = `{"type":"note.created","data":{"object":${note}}}`;
  const signature = createHmac('sha256', secretKey).update(`${id}.${time}.${body}`).digest('base64');
  const headers = {
    'Content-Type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': `v1,${signature}`,
  };
  return { path: '/api/v1/webhooks/handled', body, headers };
}

type Kind = { readonly next: Source; readonly status: number; readonly source?: string };

const kinds = {
  plain: { next: () => [post('plain')], status: 201 },
  hooked: { next: () => [post('hooked')], status: 201 },
  writes: { next: () => [post('plain'), post('plain')], status: 201 },
  action: { next: () => [post('pair')], status: 204 },
  received: { next: () => [signedMessage()], status: 204, source: 'handled' },
  subscribed: { next: () => [post('watched')], status: 201, source: 'subscriber:watch' },
} satisfies Readonly<Record<string, Kind>>;
type KindName = keyof typeof kinds;

/** The first of each is held against the second. */
const pairs: readonly (readonly [KindName, KindName, string])[] = [
  ['hooked', 'plain', 'creates with an empty beforeWrite against creates without one'],
  ['action', 'writes', 'an action that writes two documents against the two writes'],
  [
    'subscribed',
    'received',
    'created documents that a subscriber handled against received webhooks that a handler did',
  ],
];

type Sample = { readonly rate: number; readonly processorUs: number };

export async function measureFunctions(run: Run): Promise<unknown> {
  say(run, ...machine(run), '');
  const place = run.engine.newPlace();
  const server = await startServer(run.pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...environmentAt(place),
    ...{
      COMITY_CONFIG: join(root, 'bench', 'functions', 'comity.config.ts'),
      HANDLED_WEBHOOK_SECRET: secret,
    },
  });
  const samples = new Map<KindName, Sample[]>();
  try {
    for (let round = -run.options.settlingRounds; round < run.options.rounds; round += 1) {
      for (const [above, below] of pairs) {
        for (const name of round % 2 === 0 ? [above, below] : [below, above]) {
          const sample = await measureOnce(run, server, kinds[name]);
          if (round >= 0) samples.set(name, [...(samples.get(name) ?? []), sample]);
        }
      }
    }
  } finally {
    await server.stop();
  }
  for (const [above, below, words] of pairs) {
    const [one, other] = [samples.get(above) ?? [], samples.get(below) ?? []];
    const rate = ratioOf(one, other, ({ rate }) => rate);
    const processor = ratioOf(other, one, ({ processorUs }) => processorUs);
    const perSecond = [one, other].map((side) => spreadOf(side.map(({ rate }) => rate)).median.toFixed(0));
    say(
      run,
      `${words}: ${spreadText(rate)} by rate (${perSecond.join(' and ')} a second), ${spreadText(processor)} by processor time, ` +
        `target >= ${functionLeast} ${verdict(rate.median >= functionLeast)}`,
    );
  }
  return { report: run.report, store: run.store, samples: [...samples] };
}

function ratioOf(above: readonly Sample[], below: readonly Sample[], of: (sample: Sample) => number): Spread {
  return spreadOf(
    above.map((sample, round) => of(sample) / of(below[round] ?? { rate: NaN, processorUs: NaN })),
  );
}

/** A second of the rate is of what was sent together, and handled where something handles it. */
async function measureOnce(run: Run, server: ServerProcess, kind: Kind): Promise<Sample> {
  const origin = `http://${server.host}:${server.port}`;
  const { connections, warmupMs, measuredMs } = run.options;
  const agent = new Agent({ connections, pipelining: 1 });
  const handledBefore = kind.source === undefined ? 0 : await handled(origin, kind.source);
  let done = 0;
  const work = async (untilMs: number): Promise<void> => {
    while (performance.now() < untilMs) {
      for (const { path, body, headers } of kind.next()) {
        const answer = await agent.request({ origin, path, body, headers, method: 'POST' });
        await answer.body.dump();
        if (answer.statusCode !== kind.status)
          throw new Error(`POST ${path} is answered ${answer.statusCode}`);
      }
      done += 1;
    }
  };
  const all = (ms: number) =>
    Promise.all(Array.from({ length: connections }, () => work(performance.now() + ms)));
  const settled = async (count: number): Promise<void> => {
    if (kind.source === undefined) return;
    while ((await handled(origin, kind.source)) - handledBefore < count) await delay(5);
  };
  await all(warmupMs);
  await settled(done);
  const warm = done;
  const [processor, started] = [server.processorUs() ?? Number.NaN, performance.now()];
  await all(measuredMs);
  await settled(done);
  const count = done - warm;
  const elapsed = (performance.now() - started) / 1000;
  const processorUs = ((server.processorUs() ?? Number.NaN) - processor) / count;
  await agent.close();
  return { rate: count / elapsed, processorUs };
}

async function handled(origin: string, source: string): Promise<number> {
  const response = await fetch(`${origin}/metrics`, { headers: { Authorization: `Bearer ${adminKey}` } });
  return sumOf(await response.text(), 'comity_received_handed_on_total', source, 'processed');
}
