/**
 * Messages that must be handled in their order (`orderBy` of a subscriber) stand in a line, by a row each, which is
 * committed with the message and removed with its conclusion. The first of a line is the one of the earliest unit; only
 * it is handed on. What a process knows of lines is a shortcut: the rows decide, also for another process.
 *
 * A message behind one that waits for its next attempt gets the same due time, so it costs nothing until then
 * (`heldBackError`). The conclusion of the first one makes the next one due at once; if that is lost with the process,
 * the next one waits for the time that it has.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { idField } from '../../model/field.ts';
import { byId, type Filter } from '../../model/filter.ts';
import { type Received, receivedDocument } from '../../model/received.ts';
import { type Change, keptRow, type Row, type Store } from '../../store/store.ts';
import { receivedCollection } from './received-tables.ts';

/** By `{line}/{message id}`; a line is named `{source}/{digest of the key}`. */
export const messageLinesTable = 'message_lines';

/** `lastError` of a message whose due time is that of the one before it. */
export const heldBackError = 'held-back';

/** The rows from which the first is chosen: ids of one line that processes assigned in another order are near each other. */
const nearestRows = 32;

export function lineChange(line: string, messageId: string, at: number): Change {
  return {
    ...{ table: messageLinesTable, id: `${line}/${messageId}`, expect: { absent: true } },
    next: keptRow('{}', null, at, at),
  };
}

type LineStore = Pick<Store, 'plan' | 'read' | 'commit'>;

export type Place =
  /** The first of its line. */
  | { readonly kind: 'first'; readonly leave: Change }
  /** It is in no line any more: it was concluded before, and is replayed. */
  | { readonly kind: 'none' }
  /** Another message comes before it. */
  | { readonly kind: 'behind'; readonly first: Row };

/** @throws StoreUnavailable */
export async function placeOf(store: LineStore, line: string, messageId: string): Promise<Place> {
  const own = await store.read(messageLinesTable, `${line}/${messageId}`);
  if (own === undefined) return { kind: 'none' };
  for (;;) {
    const first = await firstOf(store, line);
    if (first === undefined || first.id === own.id) return { kind: 'first', leave: leaving(own) };
    const row = await store.read(receivedCollection.name, messageIdOf(first));
    if (row !== undefined && (JSON.parse(row.doc) as Received).status === 'pending') {
      return { kind: 'behind', first: row };
    }
    // It was marked by hand, or retention removed it. If it is replayed meanwhile, it has no place in the line.
    await store.commit({ changes: [leaving(first)], events: [] });
  }
}

async function firstOf(store: LineStore, line: string): Promise<Row | undefined> {
  const filters: readonly Filter[] = [
    { op: 'gt', field: idField, value: `${line}/` },
    // `0` follows `/` in code point order.
    { op: 'lt', field: idField, value: `${line}0` },
  ];
  const filter: Filter = { op: 'and', filters };
  const rows = await store
    .plan({ table: messageLinesTable, filter, sort: byId, limit: nearestRows })
    .rows({ from: 'start' });
  let first: Row | undefined;
  for (const row of rows) if (first === undefined || row.rev < first.rev) first = row;
  return first;
}

function messageIdOf({ id }: Row): string {
  return id.slice(id.lastIndexOf('/') + 1);
}

function leaving({ id, rev }: Row): Change {
  return { table: messageLinesTable, id, expect: { rev }, next: null };
}

/**
 * Gives a message the due time of the one before it.
 * @returns the due time; undefined if one of them was changed meanwhile, and must be looked at again
 * @throws StoreUnavailable
 */
export async function holdBack(
  store: LineStore,
  own: { readonly received: Received; readonly rev: number },
  first: Row,
  { dueAt, at }: { readonly dueAt: number; readonly at: number },
): Promise<number | undefined> {
  const table = receivedCollection.name;
  const depends: Change = { table, id: first.id, expect: { rev: first.rev }, next: null, stays: true };
  const commit = await store.commit({ changes: [dueChange(own, dueAt, at), depends], events: [] });
  return commit.outcome === 'committed' ? dueAt : undefined;
}

/**
 * Makes the first message of the line due if it was held back.
 * @returns its row, if it is due
 * @throws StoreUnavailable
 */
export async function callNext(store: LineStore, line: string, at: number): Promise<Row | undefined> {
  const first = await firstOf(store, line);
  const row = first === undefined ? undefined : await store.read(receivedCollection.name, messageIdOf(first));
  if (row === undefined) return undefined;
  const received = JSON.parse(row.doc) as Received;
  if (received.status !== 'pending') return undefined;
  if (Date.parse(received.dueAt ?? '') <= at) return row;
  if (received.lastError !== heldBackError) return undefined;
  const change = dueChange({ received, rev: row.rev }, at, at);
  const { outcome } = await store.commit({ changes: [change], events: [] });
  // Superseded: it was replayed or marked.
  return outcome === 'committed' ? row : undefined;
}

function dueChange(
  { received, rev }: { readonly received: Received; readonly rev: number },
  dueAt: number,
  at: number,
): Change {
  const updatedAt = Math.max(at, Date.parse(received.updatedAt));
  const next: Received = {
    ...received,
    ...{ dueAt: new Date(dueAt).toISOString(), lastError: heldBackError },
    updatedAt: new Date(updatedAt).toISOString(),
  };
  return {
    ...{ table: receivedCollection.name, id: received.id, expect: { rev } },
    next: keptRow(receivedDocument(next), null, Date.parse(received.createdAt), updatedAt),
  };
}

/** Messages of one queue that wait in memory for one of their line that is under way here. */
const heldMax = memoryBounds.heldMessages.entries;

/** The lines of one queue, as far as this process has messages of them. */
export class Lines<Due extends { readonly id: string }> {
  /** The message that is under way, by line. */
  readonly #underWay = new Map<string, string>();
  readonly #held = new Map<string, Due[]>();
  readonly #heldIds = new Set<string>();
  /** Lines of messages that got their turn, until it begins. */
  readonly #called = new Map<string, string>();

  get isFull(): boolean {
    return this.#heldIds.size >= heldMax;
  }

  holds(id: string): boolean {
    return this.#heldIds.has(id);
  }

  isUnderWay(line: string): boolean {
    return this.#underWay.has(line);
  }

  /** @returns false if another message of the line is under way */
  begin(line: string, id: string): boolean {
    const other = this.#underWay.get(line);
    if (other !== undefined) return other === id;
    this.#underWay.set(line, id);
    return true;
  }

  end(line: string, id: string): void {
    if (this.#underWay.get(line) === id) this.#underWay.delete(line);
  }

  hold(line: string, due: Due): void {
    this.#heldIds.add(due.id);
    const held = this.#held.get(line);
    if (held === undefined) this.#held.set(line, [due]);
    else held.push(due);
  }

  /** @returns true if the message waited here */
  leave(line: string, id: string): boolean {
    if (!this.#heldIds.delete(id)) return false;
    this.#called.set(id, line);
    const left = (this.#held.get(line) ?? []).filter((due) => due.id !== id);
    if (left.length === 0) this.#held.delete(line);
    else this.#held.set(line, left);
    return true;
  }

  /** Takes the first of those that wait, unless another is under way. */
  next(line: string): Due | undefined {
    if (this.#underWay.has(line)) return undefined;
    const held = this.#held.get(line);
    const due = held?.shift();
    if (due === undefined) return undefined;
    this.#heldIds.delete(due.id);
    this.#called.set(due.id, line);
    if (held?.length === 0) this.#held.delete(line);
    return due;
  }

  isCalled(id: string): boolean {
    return this.#called.has(id);
  }

  /** The line that gave the message its turn: others of it wait for what becomes of the message. */
  calledFrom(id: string): string | undefined {
    const line = this.#called.get(id);
    this.#called.delete(id);
    return line;
  }

  /** Forgets those that wait. @returns their ids */
  clear(): readonly string[] {
    const ids = [...this.#heldIds];
    this.#held.clear();
    this.#called.clear();
    this.#heldIds.clear();
    return ids;
  }
}
