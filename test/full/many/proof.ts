/** What must hold after a mixed load, whatever died in it. Each that does not is a sentence. */
import type { RunningServer } from '../../harness/running-server.ts';
import type { StreamedEvent } from '../../wire/resources/event-reader.ts';
import type { Violations } from './client.ts';
import type { Attempt, Journal } from './journal.ts';

type Sender = Pick<RunningServer, 'send'>;
type Resource = { readonly id: string; readonly name: string; readonly tags?: readonly string[] };
type Envelope = { readonly id: string; readonly type: string; readonly data: { readonly object: Resource } };

const pageItems = 1000;
/** Twice what a lease lasts. */
const operationsMsMax = 60_000;
const operationPauseMs = 100;

/** Every page of a list, from one process. */
export async function readAll<T>(program: Sender, path: string): Promise<readonly T[]> {
  const found: T[] = [];
  let cursor: unknown = null;
  do {
    const more = cursor === null ? '' : `&cursor=${cursor}`;
    const page = (await program.send('GET', `${path}?limit=${pageItems}${more}`)).json();
    found.push(...(page.items as T[]));
    cursor = page.nextCursor;
  } while (cursor !== null);
  return found;
}

/** Every accepted operation ends and has made what it was asked for. Those of a process that died wait for its lease to run out. */
export async function proveOperations(
  program: Sender,
  journal: Journal,
  violations: Violations,
): Promise<void> {
  const deadline = Date.now() + operationsMsMax;
  for (const [location, name] of journal.accepted) {
    let answer = await program.send('GET', location);
    while (answer.status === 200 && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, operationPauseMs));
      answer = await program.send('GET', location);
    }
    const path = String(answer.headers.location);
    const made = answer.status === 303 ? await program.send('GET', path) : answer;
    if (made.status !== 200 || made.json().name !== name) {
      violations.push(`${location} was to make ${name}, and is ${answer.status} ${made.status} ${made.body}`);
    } else journal.standing.set(path, { path, name, etag: String(made.headers.etag) });
  }
}

/** No acknowledged write is lost, and none was made twice. */
export async function proveWrites(
  program: Sender,
  collection: string,
  journal: Journal,
  violations: Violations,
): Promise<void> {
  const resources = await readAll<Resource>(program, collection);
  const byPath = new Map(resources.map((resource) => [`${collection}/${resource.id}`, resource]));
  for (const { path, name, etag } of journal.standing.values()) {
    const read = await program.send('GET', path);
    if (read.status !== 200 || read.headers.etag !== etag) {
      violations.push(
        `${path} (${name}) was acknowledged as ${etag} and is ${read.status} ${read.headers.etag}`,
      );
    }
    if (byPath.get(path)?.name !== name) violations.push(`${path} (${name}) is not in the list`);
  }
  for (const path of journal.deleted) {
    if (byPath.has(path)) violations.push(`${path} was deleted and is there`);
  }
  const names = new Set<string>();
  for (const { name } of resources) {
    if (names.has(name)) violations.push(`${name} was made twice`);
    names.add(name);
  }
  const known = new Set([...journal.standing.values()].map(({ name }) => name));
  for (const [path, { name }] of byPath) {
    const accounted = known.has(name) || journal.contested.has(path) || journal.perhapsMade.has(name);
    if (!accounted && !journal.perhapsDeleted.has(path))
      violations.push(`${path} (${name}) is there, and nobody knows why`);
  }
  for (const [path, attempts] of journal.contested) {
    proveContested(path, byPath.get(path)?.tags ?? [], attempts, violations);
  }
}

/** The tags that stand are the order of the changes that were made: each race had at most one winner. */
export function proveContested(
  path: string,
  tags: readonly string[],
  attempts: readonly Attempt[],
  violations: Violations,
): void {
  const places = new Map<string, number>();
  for (const [place, tag] of tags.entries()) {
    if (places.has(tag)) violations.push(`${path}: ${tag} was added twice`);
    places.set(tag, place);
  }
  const byPlace = new Map<number, Attempt>();
  const winners = new Map<string, string>();
  for (const attempt of attempts) {
    const place = places.get(attempt.tag);
    if (attempt.fate === 'made' && place === undefined) violations.push(`${path}: ${attempt.tag} is lost`);
    if (attempt.fate === 'not-made' && place !== undefined)
      violations.push(`${path}: ${attempt.tag} was refused and is there`);
    if (place === undefined) continue;
    byPlace.set(place, attempt);
    if (attempt.base === undefined) continue;
    const other = winners.get(attempt.base);
    if (other !== undefined)
      violations.push(`${path}: ${attempt.base} was won by ${other} and by ${attempt.tag}`);
    winners.set(attempt.base, attempt.tag);
  }
  for (const [place, attempt] of byPlace) {
    const before = byPlace.get(place - 1)?.etag;
    if (attempt.base !== undefined && before !== undefined && before !== attempt.base) {
      violations.push(`${path}: ${attempt.tag} was made from ${attempt.base} and stands after ${before}`);
    }
  }
  if (byPlace.size !== tags.length)
    violations.push(`${path}: ${tags.length - byPlace.size} tags that nobody sent`);
}

/** A tail that resumed saw every event of the log once, and the log has one event for each change. */
export async function proveEvents(
  program: Sender,
  events: string,
  first: string,
  tails: readonly (readonly StreamedEvent[])[],
  journal: Journal,
  violations: Violations,
): Promise<void> {
  const log = (await readAll<Envelope>(program, events)).map(({ id }) => id);
  const after = new Set(log);
  const [reference = []] = tails;
  for (const [index, tail] of tails.entries()) {
    const seen = new Set<string>();
    for (const { id } of tail) {
      if (seen.has(id)) violations.push(`tail ${index} saw ${id} twice`);
      if (!after.has(id)) violations.push(`tail ${index} saw ${id}, which the log has not`);
      seen.add(id);
    }
    const missed = log.filter((id) => id !== first && !seen.has(id));
    if (missed.length > 0)
      violations.push(`tail ${index} missed ${missed.length} events: ${missed.slice(0, 3).join(' ')}`);
    const differs = tail.findIndex(({ id }, place) => reference[place]?.id !== id);
    if (differs !== -1) violations.push(`tails 0 and ${index} differ in order from event ${differs} on`);
  }
  proveOneEventEach(reference, journal, violations);
}

function proveOneEventEach(tail: readonly StreamedEvent[], journal: Journal, violations: Violations): void {
  const counts = new Map<string, number>();
  const grown = new Map<string, number>();
  for (const { event, data } of tail) {
    const { object } = (JSON.parse(data) as Envelope).data;
    counts.set(`${event} ${object.id}`, (counts.get(`${event} ${object.id}`) ?? 0) + 1);
    if (event !== 'products.updated') continue;
    const length = object.tags?.length ?? 0;
    if (length !== (grown.get(object.id) ?? 0) + 1)
      violations.push(`an event of ${object.id} came out of order`);
    grown.set(object.id, length);
  }
  const idOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);
  const expect = (type: string, path: string) => {
    const count = counts.get(`${type} ${idOf(path)}`) ?? 0;
    if (count !== 1) violations.push(`${path} has ${count} events ${type}`);
  };
  for (const path of journal.standing.keys()) expect('products.created', path);
  for (const path of journal.deleted) {
    expect('products.created', path);
    expect('products.deleted', path);
  }
}
