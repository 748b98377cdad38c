/**
 * A page with what it includes, as one state of all tables that it depends on: its version names the versions of them
 * all. If one of them changes between the reads, the page is read again.
 */
import type { Principal } from '../../model/principal.ts';
import type { MaybePromise, Page, Store } from '../../store/store.ts';
import { laterVersion } from '../../store/version-text.ts';
import { whenKnown } from '../../store/when-known.ts';
import type { Fault } from '../query/list-query.ts';
import type { ReadRelated, Related } from './related.ts';
import type { Expansion, Relations } from './relations.ts';

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

export function readRelatedPage(
  sources: PageSources,
  expansion: Expansion,
  reading: PageReading,
  readsLeft = readsMax,
): MaybePromise<RelatedPage> {
  const { store, readRelated, of } = sources;
  const { read, shown, principal, party } = reading;
  if (readRelated === undefined || of === undefined) throw new Error('an expansion requires relations');
  const before = versionsOf(store, expansion.tables);
  // A failure of the page is reported first.
  if (before instanceof Promise) before.catch(() => undefined);
  const judged = (page: Page, docs: readonly string[], { text, mark }: Related): MaybePromise<RelatedPage> =>
    whenKnown(before, (versions) =>
      whenKnown(versionsOf(store, expansion.tables), (after) => {
        if (versions === after) return { page, docs, text, version: `${page.version}-${versions}` };
        if (readsLeft > 1) return readRelatedPage(sources, expansion, reading, readsLeft - 1);
        return { page, docs, text, version: `${page.version}-${mark()}` };
      }),
    );
  return whenKnown(read(), (page) =>
    whenKnown(shown(page), (docs) =>
      whenKnown(readRelated(expansion, { of, docs, principal, party }), (related) =>
        'fault' in related
          ? { page, docs, version: page.version, fault: related.fault }
          : judged(page, docs, related),
      ),
    ),
  );
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
  const included = versionsOf(store, expansion.tables);
  return whenKnown(latest, (own) => whenKnown(included, (others) => `${own}-${others}`));
}

/** The versions of the tables as one text. */
function versionsOf(store: Store, tables: readonly string[]): MaybePromise<string> {
  const versions = tables.map((table) => store.version(table));
  const known = versions.filter((version) => typeof version === 'string');
  if (known.length === versions.length) return known.join('-');
  return Promise.all(versions).then((all) => all.join('-'));
}
