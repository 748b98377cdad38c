/**
 * Reads what a response adds to its documents (§4.16): the documents that they refer to, and the numbers of those that
 * refer to them. One read for each collection and level, and one for each count. A document that does not exist and
 * one that the caller may not read are both left out, so that neither can be distinguished from the other.
 *
 * The documents are added to the text of the response as they are stored, without parsing any of them.
 */
import { hash } from 'node:crypto';
import { valueAt } from '../../http/syntax/json-members.ts';
import type { OctetLine } from '../../memory/program-memory.ts';
import { permission, permits } from '../../model/access.ts';
import { type Collection, tagFieldOf } from '../../model/collection.ts';
import type { Party } from '../../model/fair-queue.ts';
import type { Field } from '../../model/field.ts';
import { allOf, type Filter } from '../../model/filter.ts';
import type { Principal } from '../../model/principal.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import { laterVersion } from '../../store/revision.ts';
import type { MaybePromise, Page, Row, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import {
  createViews,
  type Seen,
  type SeenDocs,
  seenBy,
  subjectOf,
  tagMember,
  tagOfSeen,
  type View,
  visibleWithField,
} from '../collection/view.ts';
import type { Fault } from '../query/list-query.ts';
import { unknownPath, withMemberAt } from '../query/selection.ts';
import type { Count, Expansion, Referring, Relations, Step } from './relations.ts';

type RelatedLimits = {
  /** Documents that a response includes. */
  readonly expandDocumentsMax: number;
  /** Their octets. */
  readonly expandBytesMax: number;
};

/** What is added to the documents of a response. */
export type Related = {
  /** Members of the enclosing object, each with a comma before it. */
  readonly text: string;
  /** Returns a mark that differs if the text does. A list rarely needs it, and it costs a hash. */
  readonly mark: () => string;
  /** The newest change of the included documents, in milliseconds since the epoch; null if that does not date the text. */
  readonly modifiedAt: number | null;
  /** By the tables that included documents were read from: their versions when they were last read. */
  readonly versions: ReadonlyMap<string, string>;
};

/** The documents as the caller sees them, and for whom they are read. */
type Expanding = {
  readonly of: Relations;
  readonly docs: readonly string[];
  readonly principal: Principal;
  readonly party: Party;
  /** Included documents show their entity tags. */
  readonly tagged: boolean;
};

export type ReadRelated = (
  expansion: Expansion,
  expanding: Expanding,
) => MaybePromise<Related | { readonly fault: Fault }>;

/** The parts that all reads share. */
type Sources = {
  readonly store: Store;
  readonly limits: RelatedLimits;
  /** The queue in which reads from a shared store wait. */
  readonly line: OctetLine | undefined;
};

export function createReadRelated(
  store: Store,
  relations: ReadonlyMap<string, Relations>,
  limits: RelatedLimits,
  line: OctetLine | undefined,
): ReadRelated {
  const views = new Map(
    [...relations.values()].map(({ collection }) => [collection.name, createViews(collection)]),
  );
  return (expansion, expanding) => {
    const { principal, of, tagged } = expanding;
    const viewOf = (collection: Collection): View => {
      const view = views.get(collection.name);
      if (view === undefined) throw new Error(`no view of ${collection.name}`);
      return view(principal);
    };
    const closed = closedPath(expansion.steps, of, viewOf);
    if (closed !== undefined) return { fault: unprocessable(unknownPath(closed, [])) };
    const reading = new Reading({ store, limits, line }, viewOf, { principal, tagged });
    return whenKnown(reading.follow([{ steps: expansion.steps, of, docs: expanding.docs }]), (fault) => {
      if (fault !== undefined) return { fault };
      if (expansion.counts.length === 0) return reading.related(expansion, undefined);
      return countAll(store, expansion.counts, expanding).then((counts) =>
        reading.related(expansion, counts),
      );
    });
  };
}

/** The path whose last field the caller may not name, because it is hidden in some documents at least. */
function closedPath(
  steps: readonly Step[],
  of: Relations,
  viewOf: (collection: Collection) => View,
): string | undefined {
  if (steps.length === 0) return undefined;
  const { fields } = viewOf(of.collection);
  for (const { field, next } of steps) {
    if (!fields.has(field)) return field;
    const target = of.references.get(field);
    const closed = target === undefined ? undefined : closedPath(next, target, viewOf);
    if (closed !== undefined) return `${field}.${closed}`;
  }
  return undefined;
}

/** Documents of one collection, and where their paths go on. */
type Level = { readonly steps: readonly Step[]; readonly of: Relations; readonly docs: readonly string[] };

type Included = { readonly seen: Seen; readonly row: Row; readonly tag: Field };

/** The documents that one response includes. A row that is left out is undefined. */
class Reading {
  readonly #sources: Sources;
  readonly #viewOf: (collection: Collection) => View;
  readonly #principal: Principal;
  readonly #tagged: boolean;
  readonly #found = new Map<string, Map<string, Included | undefined>>();
  #documents = 0;
  #bytes = 0;
  #uncounted: (readonly Row[])[] = [];
  readonly #versions = new Map<string, string>();

  constructor(
    sources: Sources,
    viewOf: (collection: Collection) => View,
    { principal, tagged }: Pick<Expanding, 'principal' | 'tagged'>,
  ) {
    this.#sources = sources;
    this.#viewOf = viewOf;
    this.#principal = principal;
    this.#tagged = tagged;
  }

  /** Reads what the levels refer to, and then what that refers to. @returns the bound that was exceeded */
  follow(levels: readonly Level[]): MaybePromise<Fault | undefined> {
    const next: { readonly step: Step; readonly of: Relations; readonly ids: readonly string[] }[] = [];
    const wanted = new Map<Relations, Set<string>>();
    for (const { steps, of, docs } of levels) {
      for (const step of steps) {
        const target = of.references.get(step.field);
        const ids = target === undefined ? [] : idsIn(docs, step.field);
        if (target === undefined || ids.length === 0) continue;
        next.push({ step, of: target, ids });
        const known = this.#found.get(target.collection.name);
        const open = wanted.get(target) ?? new Set();
        for (const id of ids) if (known?.has(id) !== true) open.add(id);
        wanted.set(target, open);
      }
    }
    if (next.length === 0) return undefined;
    return whenKnown(this.#readAll([...wanted]), (fault) => {
      if (fault !== undefined) return fault;
      const deeper = next.flatMap(({ step, of, ids }) => {
        if (step.next.length === 0) return [];
        const found = this.#found.get(of.collection.name);
        const docs = [...new Set(ids)].flatMap((id) => found?.get(id)?.seen.doc ?? []);
        return docs.length === 0 ? [] : [{ steps: step.next, of, docs }];
      });
      return deeper.length === 0 ? undefined : this.follow(deeper);
    });
  }

  #readAll(wanted: readonly (readonly [Relations, ReadonlySet<string>])[]): MaybePromise<Fault | undefined> {
    const [first, ...rest] = wanted;
    if (first === undefined) return undefined;
    const [{ collection }, ids] = first;
    return whenKnown(this.#read(collection, [...ids]), (fault) => fault ?? this.#readAll(rest));
  }

  #read(collection: Collection, ids: readonly string[]): MaybePromise<Fault | undefined> {
    if (ids.length === 0) return undefined;
    const { store, limits, line } = this.#sources;
    const { expandDocumentsMax, expandBytesMax } = limits;
    const found = this.#found.get(collection.name) ?? new Map<string, Included | undefined>();
    this.#found.set(collection.name, found);
    for (const id of ids) found.set(id, undefined);
    const permitted = permission(collection.access.read, 'read', this.#principal);
    if (permitted === 'denied') return undefined;
    this.#documents += ids.length;
    if (this.#documents > expandDocumentsMax) {
      return tooMuch(`${expandDocumentsMax} documents (COMITY_EXPAND_DOCUMENTS_MAX)`);
    }
    const left = expandBytesMax - this.#countBytes();
    const read = () => store.readMany(collection.name, ids, left);
    const reading = line === undefined ? read() : line.run(expandBytesMax, read);
    return whenKnown(reading, (all) => {
      if (all === undefined) return tooMuch(`${expandBytesMax} octets (COMITY_EXPAND_BYTES_MAX)`);
      this.#versions.set(collection.name, all.version);
      const rows = [...all.rows.values()];
      this.#uncounted.push(rows);
      const view = this.#viewOf(collection);
      const tag = tagFieldOf(collection);
      return whenKnown(this.#readable(collection, rows, permitted === 'granted'), (seen) => {
        for (const row of seen) found.set(row.id, { row, tag, seen: seenBy(view, row.doc, row.owner) });
        return undefined;
      });
    });
  }

  #readable({ access }: Collection, rows: readonly Row[], areGranted: boolean): MaybePromise<readonly Row[]> {
    if (areGranted) return rows.filter(({ deletedAt }) => deletedAt === null);
    const beyond = new RelatedRows(this.#sources.store);
    return judged(beyond, () =>
      rows.filter(
        (row) =>
          row.deletedAt === null && permits(access.read, 'read', this.#principal, subjectOf(row, beyond)),
      ),
    );
  }

  /** The octets of all rows so far; the last ones of most responses are never counted. */
  #countBytes(): number {
    for (const rows of this.#uncounted) for (const { doc } of rows) this.#bytes += Buffer.byteLength(doc);
    this.#uncounted = [];
    return this.#bytes;
  }

  /** @param counts as JSON; undefined if none were asked for */
  related({ steps }: Expansion, counts: string | undefined): Related {
    const pieces: string[] = [];
    let modifiedAt: number | null = counts === undefined ? 0 : null;
    for (const [name, found] of this.#found) {
      let before = `${pieces.length === 0 ? '' : '},'}${JSON.stringify(name)}:{`;
      for (const [id, included] of found) {
        // What is left out now may have been included before: no time of a change shows it.
        if (included === undefined) modifiedAt = null;
        else {
          pieces.push(before, JSON.stringify(id), ':', this.#tagged ? withTag(included) : included.seen.doc);
          before = ',';
          if (modifiedAt !== null) modifiedAt = Math.max(modifiedAt, included.row.updatedAt);
        }
      }
    }
    const counted = counts === undefined ? '' : `,"counts":${counts}`;
    const closed = pieces.length === 0 ? '' : '}';
    // One copy of all documents; templates would make one for each.
    const included = steps.length === 0 ? '' : `,"included":{${pieces.join('')}${closed}}`;
    const mark = () => this.#mark(counted);
    return { text: `${included}${counted}`, mark, modifiedAt, versions: this.#versions };
  }

  #mark(counted: string): string {
    const marks: unknown[] = [];
    for (const [name, found] of this.#found)
      for (const [id, included] of found)
        if (included !== undefined) marks.push(name, id, included.row.rev, included.seen.mark);
    return hash('sha256', `${marks.join('\n')}\n${counted}`, 'base64url').slice(0, markCharacters);
  }
}

function withTag({ seen, row, tag }: Included): string {
  return withMemberAt(seen.doc, tag.path, tagMember(tag, tagOfSeen(row.rev, seen.mark)));
}

/** 96 bits. */
const markCharacters = 16;

/** @returns the ids that the documents hold in the field */
function idsIn(docs: readonly string[], field: string): readonly string[] {
  const ids: string[] = [];
  for (const doc of docs) {
    const value = valueAt(doc, [field]);
    if (typeof value === 'string') ids.push(value);
    else if (Array.isArray(value)) for (const id of value) if (typeof id === 'string') ids.push(id);
  }
  return ids;
}

function tooMuch(bound: string): Fault {
  return unprocessable(`expand would include more than ${bound}; lower the limit or name fewer paths`);
}

function unprocessable(message: string): Fault {
  return { kind: 'unprocessable', message };
}

/** @returns JSON: the counts by name of each document by id */
async function countAll(
  store: Store,
  counts: readonly Count[],
  { of, docs, principal, party }: Expanding,
): Promise<string> {
  const ids = docs.map((doc) => (valueAt(doc, ['id']) as string | undefined) ?? '');
  const found = await Promise.all(
    counts.map(async ({ name }) => {
      const referring = of.counts.get(name);
      if (referring === undefined) throw new Error(`no count is named ${name}`);
      const filter = visibleWithField(referring.from.collection, referring.field, principal);
      if (filter.op === 'never' || ids.length === 0) return [name, none] as const;
      const byId = await countBy(store, referring, { filter, ids, party });
      return [name, byId] as const;
    }),
  );
  const members = [...new Set(ids)].map((id) => {
    const own = found.map(([name, byId]) => `${JSON.stringify(name)}:${byId.get(id) ?? 0}`);
    return `${JSON.stringify(id)}:{${own.join(',')}}`;
  });
  return `{${members.join(',')}}`;
}

const none: ReadonlyMap<string, number> = new Map();

/** The number of the documents that refer to each id, one grouped read for all ids. */
async function countBy(
  store: Store,
  { from, field }: Referring,
  { filter, ids, party }: { readonly filter: Filter; readonly ids: readonly string[]; readonly party: Party },
): Promise<ReadonlyMap<string, number>> {
  const referring: Filter = { op: 'in', field, values: ids };
  const counted = await store.aggregate(
    {
      ...{ table: from.collection.name, filter: allOf([filter, referring]) },
      ...{ groupBy: [field], measures: [{ of: 'rows' }] },
      ...{ groupsMax: ids.length, bytesMax: Number.MAX_SAFE_INTEGER },
    },
    party,
  );
  if (counted.outcome === 'exceeded') throw new Error(`more groups than ids in ${field.name}`);
  return new Map(counted.groups.map(({ key, values }) => [String(key[0]), Number(values[0])]));
}

// A page with what it includes, as one state of all tables that it depends on: its version names the versions of them all. If one of them
// changes between the reads, the page is read again.

/** Then the version is of the content instead, because no versions of tables belong to it. */
const readsMax = 3;

type PageSources = {
  readonly store: Store;
  readonly readRelated: ReadRelated | undefined;
  readonly of: Relations | undefined;
};

type PageReading = {
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

type RelatedPage = SeenDocs & {
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

type ListTables = {
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
  known: ReadonlyMap<string, string> = noVersions,
): MaybePromise<readonly string[]> {
  const versions = tables.map((table) => known.get(table) ?? store.version(table));
  const present = versions.filter((version) => typeof version === 'string');
  return present.length === versions.length ? present : Promise.all(versions);
}

const noVersions: ReadonlyMap<string, string> = new Map();
