/**
 * A dry run of an import (§4.19.12): a store that judges each unit and makes none. The last change of each unit expects a row that is not there, so
 * a unit that fails there would have been made. What records before it would have made is not in the store, so their ids and unique values are
 * remembered here, by their digests.
 */
import { createHash } from 'node:crypto';
import { answers } from '../../http/conduct/answers.ts';
import type { Ask } from '../../kernel/resource.ts';
import type { Change, Commit, Store, Unit } from '../../store/store.ts';
import { uniqueValues } from '../../store/unique-values.ts';
import type { BulkItem, How } from '../document/bulk-content.ts';
import { type ItemResult, unchanged } from './bulk-writes.ts';
import type { Served } from './served-collection.ts';

/** Names that are remembered; what repeats a later one is found by the import itself. */
const namesMax = 100_000;
/** Of one name, as counted in the memory budget. */
const nameBytes = 160;

export class Trial {
  readonly store: Store;
  readonly #served: Served;
  readonly #ask: Ask;
  /** The id of the document that would have the name, by its digest. */
  readonly #names = new Map<string, string>();

  constructor(served: Served, ask: Ask) {
    this.#served = served;
    this.#ask = ask;
    this.store = { ...served.store, commit: (unit) => this.#judge(unit) };
  }

  async #judge(unit: Unit): Promise<Commit> {
    const { collection, newId, store } = this.#served;
    const added: string[] = [];
    for (const [at, change] of unit.changes.entries()) {
      const taken = this.#claim(change, added);
      if (taken === undefined) continue;
      this.#forget(added);
      return { outcome: 'taken', change: at, fields: taken };
    }
    const never = {
      table: collection.name,
      id: newId(),
      expect: { rev: 1 },
      next: null,
      stays: true,
    } as const;
    const commit = await store.commit({ ...unit, changes: [...unit.changes, never] });
    const isSound = commit.outcome === 'superseded' && commit.change === unit.changes.length;
    if (isSound) return { outcome: 'committed', rev: 0 };
    this.#forget(added);
    return commit;
  }

  /** Remembers what the change would have. @returns the fields of a name that an earlier record would have */
  #claim({ table, id, expect, next }: Change, added: string[]): readonly string[] | undefined {
    const { collection } = this.#served;
    if (table !== collection.name || next === null || next.deletedAt !== null) return undefined;
    const own = digestOf(['id', id]);
    if ('absent' in expect && this.#names.has(own)) return ['id'];
    this.#remember(own, id, added);
    for (const [at, values] of uniqueValues(collection.unique, { id, doc: next.doc }).entries()) {
      if (values === undefined) continue;
      const name = digestOf([at, ...values]);
      const holder = this.#names.get(name);
      if (holder !== undefined && holder !== id)
        return collection.unique[at]?.map((field) => field.name) ?? [];
      this.#remember(name, id, added);
    }
    return undefined;
  }

  #remember(name: string, id: string, added: string[]): void {
    if (this.#names.has(name) || this.#names.size >= namesMax) return;
    if (this.#ask.request.memory?.hold(nameBytes) === false) return;
    this.#names.set(name, id);
    added.push(name);
  }

  #forget(names: readonly string[]): void {
    for (const name of names) this.#names.delete(name);
    this.#ask.request.memory?.giveBack(nameBytes * names.length);
  }

  /** The results with those of records that name a document which an earlier one would have created. */
  settled(items: readonly BulkItem[], results: readonly ItemResult[], how: How): readonly ItemResult[] {
    return results.map((result, at) => {
      const item = items[at];
      if (item === undefined || !('problem' in result) || result.problem.code !== 'unique_taken')
        return result;
      const id = this.#named(item, how);
      if (id === undefined || (item.change === undefined && how.import?.existing === 'refuse')) return result;
      return how.import?.existing === 'skip' ? unchanged(id) : { status: answers.changed.status, id };
    });
  }

  /** The id of the document that the item names, if an earlier record would have created it. */
  #named(item: BulkItem, { key, import: options }: How): string | undefined {
    const { change } = item;
    if (change !== undefined && typeof change.names !== 'string') {
      const doc = JSON.stringify(change.value);
      const [values] = uniqueValues([key ?? []], { id: '', doc });
      const at = this.#served.collection.unique.indexOf(key ?? []);
      return values === undefined ? undefined : this.#names.get(digestOf([at, ...values]));
    }
    const given = 'given' in item && options !== undefined ? item.given.id : undefined;
    const id = typeof change?.names === 'string' ? change.names : given;
    return id === undefined ? undefined : this.#names.get(digestOf(['id', id]));
  }
}

function digestOf(name: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(name)).digest('base64').slice(0, 22);
}
