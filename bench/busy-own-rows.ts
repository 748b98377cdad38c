/**
 * Rows of Comity's own that many requests change at once: one account, one endpoint, the sessions of one account, the keys of one owner, one
 * Idempotency-Key; 64 clients, each against the same requests spread over 64 of them, on the same server. A refusal ends the run.
 */
import { Agent, request } from 'undici';
import { type Account, logIn, register } from './authenticated.ts';
import { spreadOf } from './cell.ts';
import { adminKey, type Subject } from './engine.ts';
import { type Run, say } from './measured-run.ts';
import { createCategory } from './pairs.ts';
import { productFields } from './product.ts';
import { spreadText, verdict } from './table.ts';
import { busyRowLeast } from './targets.ts';

const clients = 64;
const places = Array.from({ length: clients }, (_, place) => place);

/** Sends what belongs to one of 64 targets. */
type Ask = (target: number, turn: number) => Promise<void>;

/** @param target of a client: its own, or the first for all */
type Rate = (target: (client: number) => number) => Promise<number>;

export async function measureBusyOwnRows(run: Run, subject: Subject): Promise<void> {
  const agent = new Agent({ connections: clients });
  const send = sender(subject, agent);
  try {
    const accounts = await register(subject, clients);
    await sayRatio(run, 'replays of one Idempotency-Key', rateOf(run, await replays(run, subject, send)));
    await sayRatio(run, 'changes of one endpoint', rateOf(run, await endpointChanges(send)));
    await sayRatio(run, 'changes of one account', rateOf(run, await accountChanges(send)));
    await sayRatio(
      run,
      'keys of one owner, created and deleted',
      rateOf(run, await keys(subject, accounts, send)),
    );
    await sayRatio(
      run,
      'refreshes of sessions of one account',
      await refreshes(run, subject, accounts, send),
    );
  } finally {
    await agent.close();
  }
}

type Send = (
  method: 'POST' | 'PATCH' | 'DELETE',
  path: string,
  status: number,
  content?: object | string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Record<string, unknown>>;

function sender({ server }: Subject, dispatcher: Agent): Send {
  return async (method, path, status, content, headers = { Authorization: `Bearer ${adminKey}` }) => {
    const { statusCode, body } = await request(`http://${server.host}:${server.port}/api/v1/${path}`, {
      method,
      dispatcher,
      headers: { ...headers, ...(content === undefined ? {} : { 'Content-Type': 'application/json' }) },
      body: content === undefined ? null : typeof content === 'string' ? content : JSON.stringify(content),
    });
    const text = await body.text();
    if (statusCode !== status)
      throw new Error(`${method} ${path} is answered with status ${statusCode}: ${text}`);
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  };
}

function rateOf(run: Run, ask: Ask): Rate {
  return async (target) => {
    let asked = 0;
    const begunMs = performance.now();
    const client = async (place: number): Promise<void> => {
      for (let turn = 0; performance.now() - begunMs < run.options.measuredMs; turn += 1) {
        await ask(target(place), turn);
        asked += 1;
      }
    };
    await Promise.all(places.map(client));
    return (asked * 1000) / (performance.now() - begunMs);
  };
}

async function sayRatio(run: Run, what: string, rate: Rate): Promise<void> {
  const ones: number[] = [];
  const ratios: number[] = [];
  for (let round = -1; round < run.options.rounds; round += 1) {
    const one = await rate(() => 0);
    const many = await rate((client) => client);
    if (round < 0) continue;
    ones.push(one);
    ratios.push(one / many);
  }
  const ratio = spreadOf(ratios);
  const judged = `target >= ${busyRowLeast} ${verdict(ratio.median >= busyRowLeast)}`;
  say(
    run,
    `${what}: ${Math.round(spreadOf(ones).median)} a second, ${spreadText(ratio)} of the rate over ${clients}, ${judged}`,
  );
}

async function replays(run: Run, subject: Subject, send: Send): Promise<Ask> {
  const categoryId = await createCategory(subject);
  const from = 7_000_000_000 + run.options.rounds;
  const ask: Ask = async (target) => {
    const headers = { Authorization: `Bearer ${adminKey}`, 'Idempotency-Key': `"busy-${target}"` };
    await send('POST', 'products', 201, `{${productFields(from + target, categoryId)}}`, headers);
  };
  for (const place of places) await ask(place, 0);
  return ask;
}

async function endpointChanges(send: Send): Promise<Ask> {
  const ids: unknown[] = [];
  for (const place of places) {
    const endpoint = { url: `https://receiver.example/${place}`, events: ['nothing.*'], scheme: 'standard' };
    ids.push((await send('POST', 'endpoints', 201, endpoint)).id);
  }
  return async (target, turn) => {
    await send('PATCH', `endpoints/${ids[target]}`, 200, { maxInFlight: 1 + (turn % 50) });
  };
}

async function accountChanges(send: Send): Promise<Ask> {
  const ids: unknown[] = [];
  for (const place of places) {
    const account = {
      email: `busy-${process.pid}-${place}@shop.example`,
      password: 'correct horse battery staple',
    };
    ids.push(((await send('POST', 'auth/register', 201, account, {})).user as { id: string }).id);
  }
  return async (target, turn) => {
    await send('PATCH', `users/${ids[target]}`, 200, { name: `Name ${turn} ${Math.random()}` });
  };
}

async function keys(subject: Subject, accounts: readonly Account[], send: Send): Promise<Ask> {
  const tokens: string[] = [];
  for (const account of accounts) tokens.push((await logIn(subject, account, false)).token);
  return async (target) => {
    const headers = { Authorization: `Bearer ${tokens[target]}` };
    const { id } = await send('POST', 'keys', 201, { name: 'busy', kind: 'secret' }, headers);
    await send('DELETE', `keys/${id}`, 204, undefined, headers);
  };
}

/** 64 sessions of the first account, and one of each; a refresh token is valid once. */
async function refreshes(
  run: Run,
  _subject: Subject,
  accounts: readonly Account[],
  send: Send,
): Promise<Rate> {
  const [first] = accounts;
  if (first === undefined) throw new Error('no account');
  const sessions = { one: [] as string[], many: [] as string[] };
  for (const account of accounts) {
    for (const [of, name] of [
      [first, 'one'],
      [account, 'many'],
    ] as const) {
      const { refreshToken } = await send('POST', 'auth/login', 200, of, {});
      sessions[name].push(String(refreshToken));
    }
  }
  return (target) => {
    const of = target(1) === 0 ? sessions.one : sessions.many;
    return rateOf(run, async (place) => {
      const { refreshToken } = await send('POST', 'auth/refresh', 200, { refreshToken: of[place] }, {});
      of[place] = String(refreshToken);
    })((client) => client);
  };
}
