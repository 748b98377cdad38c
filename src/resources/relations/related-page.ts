/**
 * A page with what it includes, as one state of all tables that it depends on: its version names the versions of them
 * all. If one of them changes between the reads, the page is read again.
 */
import type { Principal } from '../../model/principal.ts';
import type { MaybePromise, Page, Store } from '../../store/store.ts';
import { laterVersion } from '../../store/version-text.ts';
import { whenKnown } from '../../store/when-known.ts';
import type { Fault } from '../query/list-query.ts';
import type { ReadRelated } from './related.ts';
import { type Expansion, type Relations, tablesOf } from './relations.ts';

/** Then the version is of the content instead, because no versions of tables belong to it. */
const readsMax = 3;

export type PageSources = {
  readonly store: Store;
  readonly readRelated: ReadRelated | undefined;
  readonly of: Relations | undefined;
};

export type PageReading = {
  readonly read: () => MaybePromise<Page>;
  /** The documents of the page as the principal sees them. */
  readonly shown: (page: Page) => MaybePromise<readonly string[]>;
  readonly principal: Principal;
  readonly party: string;
};

export type RelatedPage = {
  readonly page: Page;
  readonly docs: readonly string[];
  readonly version: string;
  /** Further members of the object with the documents, each with a comma before it. */
  readonly text?: string;
  readonly fault?: Fault;
};

export async function readRelatedPage(
  { store, readRelated, of }: PageSources,
  expansion: Expansion,
  { read, shown, principal, party }: PageReading,
): Promise<RelatedPage> {
  if (readRelated === undefined || of === undefined) throw new Error('an expansion requires relations');
  const tables = tablesOf(expansion);
  for (let reads = 1; ; reads += 1) {
    const before = versionsOf(store, tables);
    // A failure of the page is reported first.
    before.catch(() => undefined);
    const page = await read();
    const docs = await shown(page);
    const related = await readRelated(expansion, { of, docs, principal, party });
    if ('fault' in related) return { page, docs, version: page.version, fault: related.fault };
    const { text, mark } = related;
    const versions = await before;
    const isSteady = versions === (await versionsOf(store, tables));
    if (isSteady) return { page, docs, text, version: `${page.version}-${versions}` };
    if (reads === readsMax) return { page, docs, text, version: `${page.version}-${mark()}` };
  }
}

export type ListTables = {
  readonly table: string;
  /** The tables that filters look at beyond references. */
  readonly related: readonly string[];
  /** Undefined: the list includes nothing. */
  readonly expansion: Expansion | undefined;
};

/** The version that a page read now would have: the latest of all tables that decide what it shows, with those of what it includes. */
export function versionOfList(store: Store, { table, related, expansion }: ListTables): MaybePromise<string> {
  let latest = store.version(table);
  for (const other of related) {
    const [one, next] = [latest, store.version(other)];
    latest = whenKnown(one, (known) => whenKnown(next, (found) => laterVersion(known, found)));
  }
  if (expansion === undefined) return latest;
  const included = versionsOf(store, tablesOf(expansion));
  return whenKnown(latest, (own) => included.then((others) => `${own}-${others}`));
}

/** The versions of the tables as one text. */
export async function versionsOf(store: Store, tables: readonly string[]): Promise<string> {
  return (await Promise.all(tables.map((table) => store.version(table)))).join('-');
}
