/** The mixed load: creates with and without a key, changes with and without a condition, deletions, reads elsewhere. */
import type { Client, Violations } from './client.ts';
import type { Attempt, Journal } from './journal.ts';

export type Load = {
  readonly client: Client;
  readonly journal: Journal;
  readonly violations: Violations;
  readonly collection: string;
  readonly categoryId: string;
  /** Whether some resources are made by operations, which outlive the process that accepted them. */
  readonly operations: boolean;
  /** Whether the worker goes on. */
  readonly goesOn: () => boolean;
};

/** Racers of one If-Match race, each on whatever process it meets. */
const racers = 3;
const jsonPatch = 'application/json-patch+json';

/** One client, doing one thing after the other. @param worker tells its names from those of the others */
export async function work(load: Load, worker: number): Promise<void> {
  const own: string[] = [];
  const contested = [...load.journal.contested.keys()];
  for (let turn = 0; load.goesOn(); turn += 1) {
    const name = `w${worker}-${turn}`;
    const path = contested[Math.floor(Math.random() * contested.length)] ?? '';
    const chance = Math.random();
    if (chance < 0.35) own.push(...(await createKeyed(load, name)));
    else if (chance < 0.45) own.push(...(await createPlainly(load, name)));
    else if (chance < 0.65) await race(load, path, name);
    else if (chance < 0.85) await append(load, path, name);
    else if (chance < 0.93) await findElsewhere(load, own);
    else await remove(load, own.shift());
  }
}

const body = (load: Load, name: string) => ({ name, price: 1, categoryId: load.categoryId });

async function createKeyed(load: Load, name: string): Promise<readonly string[]> {
  const asked = { json: body(load, name), headers: { 'Idempotency-Key': `"${name}"` } };
  // Now and then the client is so impatient that it asks twice at once.
  const twice = Math.random() < 0.2 ? load.client.attempt('POST', load.collection, asked) : undefined;
  const answer = await load.client.insist('POST', load.collection, asked);
  const second = await twice;
  if (answer === undefined) {
    load.journal.perhapsMade.add(name);
    return [];
  }
  if (second?.status === 201 && second.headers.location !== answer.headers.location) {
    load.violations.push(`the key ${name} made ${second.headers.location} and ${answer.headers.location}`);
  }
  return acknowledge(load, name, answer.status, answer);
}

async function createPlainly(load: Load, name: string): Promise<readonly string[]> {
  const later = load.operations && Math.random() < 0.5 ? { headers: { Prefer: 'respond-async' } } : {};
  const answer = await load.client.attempt('POST', load.collection, { json: body(load, name), ...later });
  if (answer === undefined || answer.status === 503) {
    load.journal.perhapsMade.add(name);
    return [];
  }
  if (answer.status === 202) {
    load.journal.accepted.set(String(answer.headers.location), name);
    return [];
  }
  return acknowledge(load, name, answer.status, answer);
}

async function acknowledge(
  load: Load,
  name: string,
  status: number,
  answer: Parameters<Journal['version']>[0],
): Promise<readonly string[]> {
  if (status !== 201) {
    load.violations.push(`${name} was refused: ${status} ${answer.body}`);
    return [];
  }
  const path = String(answer.headers.location);
  const etag = load.journal.version(answer, path);
  load.journal.standing.set(path, { path, name, etag });
  const read = await load.client.insist('GET', path);
  if (read !== undefined && (read.status !== 200 || read.headers.etag !== etag)) {
    load.violations.push(
      `${path} was acknowledged as ${etag} and read as ${read.status} ${read.headers.etag}`,
    );
  }
  return [path];
}

/** Several changes made from one version: at most one of them may be. */
async function race(load: Load, path: string, name: string): Promise<void> {
  const read = await load.client.insist('GET', path);
  if (read?.status !== 200) return;
  const base = String(read.headers.etag);
  const attempts = Array.from({ length: racers }, (_, index): Attempt => {
    return { tag: `${name}-${index}`, base, fate: 'unknown', etag: undefined };
  });
  load.journal.contested.get(path)?.push(...attempts);
  await Promise.all(attempts.map((attempt) => change(load, path, attempt, { 'If-Match': base })));
}

/** A change without a condition: its key sees to it that it is made once. */
async function append(load: Load, path: string, name: string): Promise<void> {
  const attempt: Attempt = { tag: name, base: undefined, fate: 'unknown', etag: undefined };
  load.journal.contested.get(path)?.push(attempt);
  await change(load, path, attempt, { 'Idempotency-Key': `"${name}"` });
}

async function change(
  load: Load,
  path: string,
  attempt: Attempt,
  condition: Readonly<Record<string, string>>,
): Promise<void> {
  const operations = [{ op: 'add', path: '/tags/-', value: attempt.tag }];
  const asked = { body: JSON.stringify(operations), headers: { 'Content-Type': jsonPatch, ...condition } };
  const first = await load.client.attempt('PATCH', path, asked);
  const isFinal = first !== undefined && first.status !== 503 && first.status !== 409;
  const answer = isFinal ? first : await load.client.insist('PATCH', path, asked);
  if (answer?.status === 200) {
    attempt.fate = 'made';
    attempt.etag = load.journal.version(answer, `${path} ${attempt.tag}`);
  } else if (answer?.status === 412) {
    // Refused at once it was not made. After a repetition it may be its own first try that was faster: it looks.
    attempt.fate = isFinal ? 'not-made' : await look(load, path, attempt.tag);
  } else if (answer !== undefined)
    load.violations.push(`${path} ${attempt.tag}: ${answer.status} ${answer.body}`);
}

async function look(load: Load, path: string, tag: string): Promise<Attempt['fate']> {
  const read = await load.client.insist('GET', path);
  if (read?.status !== 200) return 'unknown';
  return (read.json().tags as readonly string[]).includes(tag) ? 'made' : 'not-made';
}

/** A list on whatever process has what another acknowledged. */
async function findElsewhere(load: Load, own: readonly string[]): Promise<void> {
  const path = own[Math.floor(Math.random() * own.length)];
  const made = path === undefined ? undefined : load.journal.standing.get(path);
  if (made === undefined) return;
  const list = await load.client.insist('GET', `${load.collection}?name=${made.name}`);
  if (list !== undefined && !list.body.includes(`"name":"${made.name}"`)) {
    load.violations.push(`${made.path} was acknowledged, and a list has it not: ${list.status} ${list.body}`);
  }
}

async function remove(load: Load, path: string | undefined): Promise<void> {
  if (path === undefined) return;
  const { journal, violations } = load;
  journal.standing.delete(path);
  const answer = await load.client.insist('DELETE', path);
  if (answer === undefined) journal.perhapsDeleted.add(path);
  else if (answer.status === 204 || answer.status === 404) journal.deleted.add(path);
  else violations.push(`DELETE ${path}: ${answer.status} ${answer.body}`);
}
