/**
 * Reads by id with a credential against the same reads without one, by the same server in the same round: what it costs to know who
 * asks. `another key each` asks with one key after another of all that are stored, more than are remembered, so that each is
 * looked up in the store; the others ask with one credential that is remembered.
 */
import { apiKey } from './api-key.ts';
import { spreadOf } from './cell.ts';
import type { Subject } from './engine.ts';
import { generateLoad } from './load/generate.ts';
import type { LoadPlan } from './load/plan.ts';
import { type Run, say } from './measured-run.ts';
import { planFor } from './pairs.ts';
import { spreadText, verdict } from './table.ts';
import { authenticatedLeast } from './targets.ts';

export type Account = { readonly email: string; readonly password: string };

/** Measures it with each number of rows, which is the number of stored keys too. */
export async function measureAuthenticated(run: Run): Promise<void> {
  say(
    run,
    '',
    '| read by id, with | keys stored | against none (spread) | target | req/s, with none | CPU us, with none |',
    '|---|---|---|---|---|---|',
  );
  for (const [rows, subject] of run.comities) await measureSubject(run, subject, rows);
  say(run, '');
}

async function measureSubject(run: Run, subject: Subject, rows: number): Promise<void> {
  const plain = planFor(run, subject, rows);
  const plans = new Map<string, LoadPlan>([['none', plain]]);
  for (const [name, fieldLine] of await credentialsOf(subject)) {
    plans.set(name, { ...plain, fieldLines: `${plain.fieldLines}${fieldLine}\r\n` });
  }
  plans.set('another key each', { ...plain, keys: rows });
  const samples = await measureRounds(run, subject, plans);
  const none = samples.get('none') ?? [];
  const median = (of: readonly Sample[], figure: keyof Sample, digits: number) =>
    spreadOf(of.map((sample) => sample[figure])).median.toFixed(digits);
  for (const [name, some] of samples) {
    if (name === 'none') continue;
    const ratio = spreadOf(some.map(({ rate }, round) => rate / (none[round]?.rate ?? Number.NaN)));
    say(
      run,
      `| ${name} | ${rows.toLocaleString('en')} | ${spreadText(ratio)} | >= ${authenticatedLeast} ` +
        `${verdict(ratio.median >= authenticatedLeast)} | ${median(some, 'rate', 0)}, ${median(none, 'rate', 0)} ` +
        `| ${median(some, 'processorUs', 1)}, ${median(none, 'processorUs', 1)} |`,
    );
  }
}

type Sample = {
  /** Requests a second. */
  readonly rate: number;
  /** Of the server, for each request. */
  readonly processorUs: number;
};

/** Forwards and backwards in turn, as the pairs are. */
async function measureRounds(
  run: Run,
  { server }: Subject,
  plans: ReadonlyMap<string, LoadPlan>,
): Promise<ReadonlyMap<string, readonly Sample[]>> {
  const samples = new Map<string, Sample[]>([...plans.keys()].map((name) => [name, []]));
  for (let round = -run.options.settlingRounds; round < run.options.rounds; round += 1) {
    const order = round % 2 === 0 ? [...plans] : [...plans].reverse();
    for (const [name, plan] of order) {
      const before = server.processorUs() ?? Number.NaN;
      const { requestsPerSecond, answersTotal } = await generateLoad(run.pinning, plan);
      const processorUs = ((server.processorUs() ?? Number.NaN) - before) / answersTotal;
      if (round >= 0) samples.get(name)?.push({ rate: requestsPerSecond, processorUs });
    }
  }
  return samples;
}

/** The field line of each kind of credential. */
async function credentialsOf(subject: Subject): Promise<ReadonlyMap<string, string>> {
  const [account] = await register(subject, 1);
  if (account === undefined) throw new Error('no account was made');
  const { token, cookie } = await logIn(subject, account, true);
  const basic = Buffer.from(`${account.email}:${account.password}`).toString('base64');
  return new Map([
    ['API key', `X-API-Key: ${apiKey(0)}`],
    ['access token', `Authorization: Bearer ${token}`],
    ['session cookie', `Cookie: theme=dark; ${cookie}`],
    ['password', `Authorization: Basic ${basic}`],
  ]);
}

/** Makes accounts. */
export async function register(subject: Subject, count: number): Promise<readonly Account[]> {
  const accounts: Account[] = [];
  for (let index = 0; index < count; index += 1) {
    const email = `bench-${process.pid}-${performance.now()}-${index}@shop.example`;
    const account = { email, password: 'correct horse battery staple' };
    await post(subject, 'register', account, 201);
    accounts.push(account);
  }
  return accounts;
}

/** @returns the access token, and the session cookie as a pair where one was asked for */
export async function logIn(
  subject: Subject,
  account: Account,
  cookie: boolean,
): Promise<{ readonly token: string; readonly cookie: string | undefined }> {
  const response = await post(subject, 'login', { ...account, ...(cookie ? { cookie } : {}) }, 200);
  const { token } = (await response.json()) as { token: string };
  return { token, cookie: response.headers.getSetCookie()[0]?.split(';', 1)[0] };
}

async function post({ server }: Subject, path: string, content: object, status: number): Promise<Response> {
  const response = await fetch(`http://${server.host}:${server.port}/api/v1/auth/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(content),
  });
  if (response.status !== status) {
    throw new Error(`POST ${path} is answered with status ${response.status}: ${await response.text()}`);
  }
  return response;
}
