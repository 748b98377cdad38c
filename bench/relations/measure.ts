/**
 * What relations cost: a page of 20 with the documents that it refers to against the page alone, and pages under a rule over a parent against
 * the same pages under a rule over an own field with an index. No result is kept, so that each request reads the store.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { type Spread, spreadOf } from '../cell.ts';
import { adminKey, environmentAt } from '../engine.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { spreadText, verdict } from '../table.ts';
import { expandLeast, relatedRuleLeast } from '../targets.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const notesMost = 100_000;
const notesPerTicket = 10;
/** Callers with few tickets, so that their notes fill some pages. */
const callers = 16;
const ticketsEach = 4;
const customers = 500;
const itemsPerRequest = 1000;

type Kind = { readonly path: string; readonly ofMany?: true };

const kinds = {
  alone: { path: 'tickets?limit=20' },
  expanded: { path: 'tickets?limit=20&expand=customerId' },
  own: { path: 'own-notes?limit=20' },
  parents: { path: 'notes?limit=20' },
  ownOfMany: { path: 'own-notes?limit=20', ofMany: true },
  parentsOfMany: { path: 'notes?limit=20', ofMany: true },
} as const satisfies Readonly<Record<string, Kind>>;
type KindName = keyof typeof kinds;

/** The first of each is held against the second. */
const pairs: readonly (readonly [KindName, KindName, string, number | undefined])[] = [
  ['expanded', 'alone', 'expand of 20 against the list alone', expandLeast],
  ['parents', 'own', 'a rule over a parent against an own field', relatedRuleLeast],
  ['parentsOfMany', 'ownOfMany', 'the same for a caller with half of all parents', undefined],
];

type Sample = { readonly rate: number; readonly processorUs: number };
type Caller = { readonly id: string; readonly authorization: string };

export async function measureRelations(run: Run): Promise<unknown> {
  say(run, ...machine(run), '');
  const place = run.engine.newPlace();
  const server = await startServer(run.pinning, [join(root, 'dist', 'main.js'), 'serve'], {
    ...environmentAt(place),
    COMITY_CONFIG: join(root, 'bench', 'relations', 'comity.config.ts'),
    COMITY_RESULT_CACHE_BYTES_MAX: '0',
  });
  const agent = new Agent({ connections: run.options.connections, pipelining: 1 });
  const samples = new Map<KindName, Sample[]>();
  const notes = Math.min(notesMost, Math.max(...run.options.rows[run.store]));
  try {
    const asked = await seed(server, agent, notes);
    for (let round = -run.options.settlingRounds; round < run.options.rounds; round += 1) {
      for (const [above, below] of pairs) {
        for (const name of round % 2 === 0 ? [above, below] : [below, above]) {
          const sample = await measureOnce(run, server, agent, { kind: kinds[name], ...asked });
          if (round >= 0) samples.set(name, [...(samples.get(name) ?? []), sample]);
        }
      }
    }
  } finally {
    await agent.close();
    await server.stop();
  }
  for (const [above, below, words, least] of pairs) {
    const [one, other] = [samples.get(above) ?? [], samples.get(below) ?? []];
    const rate = ratioOf(one, other, (sample) => sample.rate);
    const processor = ratioOf(other, one, (sample) => sample.processorUs);
    const perSecond = [one, other].map((side) => spreadOf(side.map((each) => each.rate)).median.toFixed(0));
    const judged = least === undefined ? 'no target' : `target >= ${least} ${verdict(rate.median >= least)}`;
    say(
      run,
      `${words}, ${notes} documents: ${spreadText(rate)} by rate (${perSecond.join(' and ')} a second), ` +
        `${spreadText(processor)} by processor time, ${judged}`,
    );
  }
  return { report: run.report, store: run.store, notes, samples: [...samples] };
}

function ratioOf(above: readonly Sample[], below: readonly Sample[], of: (sample: Sample) => number): Spread {
  return spreadOf(
    above.map((sample, round) => of(sample) / of(below[round] ?? { rate: NaN, processorUs: NaN })),
  );
}

type Asked = { readonly few: readonly Caller[]; readonly many: Caller };

/** Half of all notes are of one caller, some pages of each of the others, and the rest of nobody. */
async function seed(server: ServerProcess, agent: Agent, notes: number): Promise<Asked> {
  const all: Caller[] = [];
  while (all.length < callers + 1) all.push(await registered(server, all.length));
  const [many, ...few] = all;
  if (many === undefined) throw new Error('no account was made');
  const id = (kind: string, at: number) => `${kind}-${String(at).padStart(7, '0')}`;
  const customer = (at: number) => id('customer', (at * 7) % customers);
  await send(server, agent, 'customers', customers, (at) => ({
    ...{ id: id('customer', at), name: `Customer ${at}` },
    address: `${at} Station Road, in the colours of the season`,
  }));
  const tickets = Math.ceil(notes / notesPerTicket);
  // Those of one caller lie apart, as they do where they were created in turn.
  const holderOf = (ticket: number): string => {
    if (ticket % 2 === 0) return many.id;
    const turn = (ticket - 1) / 2;
    const apart = Math.max(1, Math.floor(tickets / 2 / (callers * ticketsEach)));
    return (turn % apart === 0 ? few[(turn / apart) % callers]?.id : undefined) ?? 'nobody';
  };
  await send(server, agent, 'tickets', tickets, (at) => ({
    ...{ id: id('ticket', at), title: `Ticket ${at} about a kettle of 1.5 litres` },
    ...{ customerId: customer(at), holder: holderOf(at) },
  }));
  for (const collection of ['own-notes', 'notes'])
    await send(server, agent, collection, notes, (at) => ({
      ...{ id: id('note', at), text: 'Enamelled kettle, 1.5 litres, in the colours of the season' },
      ...{ ticketId: id('ticket', at % tickets), holder: holderOf(at % tickets) },
    }));
  return { few, many };
}

async function registered(server: ServerProcess, at: number): Promise<Caller> {
  const account = { email: `relations-${at}@shop.example`, password: 'correct horse battery staple' };
  const response = await fetch(`http://${server.host}:${server.port}/api/v1/auth/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(account),
  });
  const { token, user } = (await response.json()) as { token: string; user: { id: string } };
  return { id: user.id, authorization: `Bearer ${token}` };
}

async function send(
  server: ServerProcess,
  agent: Agent,
  collection: string,
  count: number,
  document: (at: number) => object,
): Promise<void> {
  const at = '2026-01-02T03:04:05.006Z';
  for (let from = 0; from < count; from += itemsPerRequest) {
    const items = Array.from({ length: Math.min(itemsPerRequest, count - from) }, (_, index) => ({
      ...{ ...document(from + index), createdAt: at, updatedAt: at, owner: null },
    }));
    const answer = await agent.request({
      ...{
        origin: `http://${server.host}:${server.port}`,
        path: `/api/v1/${collection}/bulk`,
        method: 'POST',
      },
      headers: { 'X-API-Key': adminKey, 'Content-Type': 'application/json' },
      body: JSON.stringify({ items, import: true }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`a bulk create is answered ${answer.statusCode}: ${text}`);
  }
}

async function measureOnce(
  run: Run,
  server: ServerProcess,
  agent: Agent,
  { kind, few, many }: Asked & { readonly kind: Kind },
): Promise<Sample> {
  const origin = `http://${server.host}:${server.port}`;
  const { connections, warmupMs, measuredMs } = run.options;
  let done = 0;
  const work = async (place: number, untilMs: number): Promise<void> => {
    const caller = kind.ofMany === true ? many : (few[place % few.length] ?? many);
    const headers = { Authorization: caller.authorization };
    while (performance.now() < untilMs) {
      const answer = await agent.request({ origin, path: `/api/v1/${kind.path}`, headers, method: 'GET' });
      const text = await answer.body.text();
      const documents = text.split('"createdAt"').length - 1;
      if (answer.statusCode !== 200 || documents < 20)
        throw new Error(`GET ${kind.path} is answered ${answer.statusCode} with ${documents} documents`);
      done += 1;
    }
  };
  const all = (ms: number) =>
    Promise.all(Array.from({ length: connections }, (_, place) => work(place, performance.now() + ms)));
  await all(warmupMs);
  const warm = done;
  const [processor, started] = [server.processorUs() ?? Number.NaN, performance.now()];
  await all(measuredMs);
  const count = done - warm;
  const elapsed = (performance.now() - started) / 1000;
  return { rate: count / elapsed, processorUs: ((server.processorUs() ?? Number.NaN) - processor) / count };
}
