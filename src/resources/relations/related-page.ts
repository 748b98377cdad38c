/**
 * A page with what it includes, as one state of all tables that it depends on: its version names the versions of them
 * all. If one of them changes between the reads, the page is read again.
 */
import type { Party } from '../../model/fair-queue.ts';
import type { Principal } from '../../model/principal.ts';
import { laterVersion } from '../../store/revision.ts';
import { type MaybePromise, type Page, type Store, whenKnown } from '../../store/store.ts';
import type { SeenDocs } from '../collection/show-docs.ts';
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
  readonly shown: (page: Page) => MaybePromise<SeenDocs>;
  readonly principal: Principal;
  readonly party: Party;
  /** Included documents show their entity tags. */
  readonly tagged: boolean;
  /** Versions of what the page includes, if they were read before; absent: they are read now. */
  readonly included?: readonly string[] | undefined;
};

export type RelatedPage = SeenDocs & {
  readonly page: Page;
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
  const { read, shown, principal, party, tagged } = reading;
  const { tables } = expansion;
  if (readRelated === undefined || of === undefined) throw new Error('an expansion requires relations');
  const before = reading.included ?? versionsOf(store, tables);
  // A failure of the page is reported first.
  if (before instanceof Promise) before.catch(() => undefined);
  const judged = (
    page: Page,
    seen: SeenDocs,
    { versions, related }: { readonly versions: readonly string[]; readonly related: Related },
  ): MaybePromise<RelatedPage> =>
    whenKnown(versionsOf(store, tables, related.versions), (after) => {
      const { text, mark } = related;
      const isOneState = versions.every((version, at) => version === after[at]);
      if (isOneState) return { page, ...seen, text, version: versionText(page.version, versions) };
      if (readsLeft > 1)
        return readRelatedPage(sources, expansion, { ...reading, included: undefined }, readsLeft - 1);
      return { page, ...seen, text, version: `${page.version}-${mark()}` };
    });
  return whenKnown(read(), (page) =>
    whenKnown(shown(page), (seen) =>
      whenKnown(before, (versions) =>
        whenKnown(readRelated(expansion, { of, docs: seen.docs, principal, party, tagged }), (related) =>
          'fault' in related
            ? { page, ...seen, version: page.version, fault: related.fault }
            : judged(page, seen, { versions, related }),
        ),
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

export type ListVersion = {
  readonly version: string;
  /** The versions of what the list includes, in the order of the tables of its expansion. */
  readonly included?: readonly string[];
};

/** The version that a page read now would have: the latest of all tables that decide what it shows, with those of what it includes. */
export function versionOfList(
  store: Store,
  { table, related, expansion }: ListTables,
): MaybePromise<ListVersion> {
  let latest = store.version(table);
  for (const other of related) {
    const [one, next] = [latest, store.version(other)];
    latest = whenKnown(one, (known) => whenKnown(next, (found) => laterVersion(known, found)));
  }
  if (expansion === undefined) return whenKnown(latest, (version) => ({ version }));
  const including = versionsOf(store, expansion.tables);
  return whenKnown(latest, (own) =>
    whenKnown(including, (included) => ({ version: versionText(own, included), included })),
  );
}

function versionText(own: string, included: readonly string[]): string {
  return `${own}-${included.join('-')}`;
}

/** @param known of some tables, which are not asked for */
function versionsOf(
  store: Store,
  tables: readonly string[],
  known: ReadonlyMap<string, string> = none,
): MaybePromise<readonly string[]> {
  const versions = tables.map((table) => known.get(table) ?? store.version(table));
  const present = versions.filter((version) => typeof version === 'string');
  return present.length === versions.length ? present : Promise.all(versions);
}

const none: ReadonlyMap<string, string> = new Map();
