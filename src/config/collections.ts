/**
 * Resolves declarations into collections: inspect-collection.ts finds every mistake, then this fills in the defaults that model/collection.ts
 * documents and resolves the names. The result needs no further checks.
 */

import { type Access, mayRelate, permission, type Rule } from '../model/access.ts';
import { createConditionRule } from '../model/access-function.ts';
import {
  type BodyFormat,
  type Collection,
  type CollectionDeclaration,
  type CollectionReference,
  resolveStamps,
  type TextBound,
  type Unique,
} from '../model/collection.ts';
import { type Field, type Fields, ignoringCase } from '../model/field.ts';
import { fileFieldsOf } from '../model/file.ts';
import type { Reach, Through } from '../model/filter.ts';
import { resolvePresentation } from '../model/presentation.ts';
import { anonymous } from '../model/principal.ts';
import { createSearchIndex } from '../model/search/search-index.ts';
import { fieldsOf } from './fields.ts';
import { reachesOf, resolveWhere } from './inspect-access.ts';
import { inspectCollections, schemaWithComputed } from './inspect-collection.ts';
import { titleTemplate } from './inspect-presentation.ts';
import { ConfigurationError, isRecord } from './inspection.ts';
import { collectionPaths } from './reserved-names.ts';

const defaultAccess: Access = {
  read: 'principal',
  create: 'principal',
  update: 'principal',
  delete: 'principal',
};
const defaultFormats: readonly BodyFormat[] = ['json', 'form', 'multipart'];

export type Referring = CollectionReference & { readonly from: string };

/**
 * @param warn receives a sentence about each declaration that works but will surprise
 * @param ofAccounts the references of accounts
 * @throws ConfigurationError with every mistake in every declaration
 */
export function resolveCollections(
  declarations: Readonly<Record<string, CollectionDeclaration>>,
  warn: (sentence: string) => void = ignore,
  ofAccounts: readonly Referring[] = [],
): ReadonlyMap<string, Collection> {
  const mistakes = inspectCollections(declarations, warn);
  if (mistakes.length > 0) throw new ConfigurationError(mistakes);
  const referring = [...referringOf(declarations), ...ofAccounts];
  const reachOf = reachesOf(declarations, (declaration) => fieldsOf(schemaWithComputed(declaration)));
  return new Map(
    Object.entries(declarations).map(([name, declaration]) => [
      name,
      resolve(name, declaration, referring, reachOf(name)?.through),
    ]),
  );
}

/** The references of declarations, by whom they come from. */
export function referringOf(
  declarations: Readonly<Record<string, Pick<CollectionDeclaration, 'references'>>>,
): readonly Referring[] {
  return Object.entries(declarations).flatMap(([from, declaration]) =>
    referencesOf(from, declaration).map((reference) => ({ ...reference, from })),
  );
}

/** A deletion marks documents that others refer to, of collections that follow a deletion or are followed. */
function markedOf(name: string, referring: readonly Referring[]): Pick<Collection, 'marked'> {
  const mayBeMarked = (of: string): boolean =>
    referring.some(({ collection }) => collection === of) &&
    referring.some(
      ({ collection, from, onDelete }) =>
        (collection === of && onDelete !== 'restrict') || (from === of && onDelete === 'cascade'),
    );
  const named = referring.filter(({ from }) => from === name).map(({ collection }) => collection);
  const marked = new Set([name, ...named].filter(mayBeMarked));
  return marked.size === 0 ? {} : { marked };
}

/**
 * Resolves a collection of the program itself, whose name is reserved.
 * @param referring references of other collections
 */
export function resolveBuiltIn(
  name: string,
  declaration: CollectionDeclaration,
  referring: readonly Referring[] = [],
): Collection {
  // Few rows, of which people look for parts of addresses.
  const { searchIndex: _, ...collection } = resolve(name, declaration, referring);
  return collection;
}

function resolve(
  name: string,
  declaration: CollectionDeclaration,
  referring: readonly Referring[],
  through?: Through,
): Collection {
  const schema = schemaWithComputed(declaration);
  const fields = fieldsOf(schema);
  const { tenantField } = declaration;
  const stamp = resolveStamps(declaration.stamp);
  const setting = { table: name, fields, tenantField, through };
  const access = resolveAccess({ ...defaultAccess, ...declaration.access }, setting);
  const hidden = resolveFieldRules(declaration.hidden, setting);
  const indexes = indexesOf(fields, declaration, access);
  const unique = (declaration.unique ?? []).map((entry) => uniqueOf(fields, entry));
  const holdIds = named(fields, Object.keys(declaration.references ?? {}));
  return {
    name,
    description: declaration.description ?? '',
    schema,
    fields,
    access,
    ...(Object.values(access).some(mayRelate) ? { relates: true } : {}),
    readOnly: resolveFieldRules(declaration.readOnly, setting),
    hidden,
    tenantField,
    conceal: declaration.conceal ?? true,
    putCreates: declaration.putCreates ?? false,
    takenIds: takenIdsOf(declaration),
    softDelete: declaration.softDelete ?? false,
    requireMatch: declaration.requireMatch ?? false,
    indexes,
    unique,
    textBounds: textBoundsOf([...indexes, ...unique, ...holdIds.map((field) => [field])]),
    unpatchable: new Set([
      ...(declaration.unpatchable ?? []),
      ...(tenantField === undefined ? [] : [tenantField]),
    ]),
    required: new Set(declaration.schema.required),
    references: referencesOf(name, declaration),
    ...filesOf(declaration),
    dependants: referring.filter((reference) => reference.collection === name),
    ...markedOf(name, referring),
    formats: new Set(declaration.formats ?? defaultFormats),
    textField: declaration.textField,
    ...searchOf(fields, declaration),
    cacheControl:
      declaration.cacheControl ??
      defaultCacheControl(access, hidden.size > 0 || declaration.hooks?.afterRead !== undefined),
    ...(declaration.actors === undefined ? {} : { actors: declaration.actors }),
    deprecation: declaration.deprecation,
    examples: declaration.examples ?? [],
    ...(declaration.computed === undefined
      ? {}
      : {
          computed: new Map(
            Object.entries(declaration.computed).map(([field, { compute }]) => [field, compute]),
          ),
        }),
    ...(stamp === undefined ? {} : { stamp }),
    presentation: resolvePresentation(declaration, titleTemplate),
    ...(declaration.hooks === undefined ? {} : { hooks: declaration.hooks }),
  };
}

function filesOf({ schema }: CollectionDeclaration): Pick<Collection, 'files'> {
  const files = fileFieldsOf(schema);
  return files.size === 0 ? {} : { files };
}

/** The declarations of actions are not inspected yet. */
function takenIdsOf({ actions }: CollectionDeclaration): readonly string[] {
  const declared: Readonly<Record<string, unknown>> = actions ?? {};
  const paths = Object.entries(declared).flatMap(([name, action]) => {
    if (!isRecord(action) || action.on !== 'collection') return [];
    const { path = `/${name}` } = action;
    return typeof path === 'string' ? [path.split('/')[1] ?? ''] : [];
  });
  return [...collectionPaths, ...new Set(paths)];
}

function referencesOf(
  from: string,
  declaration: Pick<CollectionDeclaration, 'references'>,
): readonly CollectionReference[] {
  return Object.entries(declaration.references ?? {}).map(([field, { collection, countAs, onDelete }]) => ({
    field,
    collection,
    onDelete: onDelete ?? 'restrict',
    countAs: countAs ?? countName(from),
  }));
}

/** The declared indexes, and one for the lists of a tenant, which then cost the same however many tenants there are. */
function indexesOf(
  fields: Fields,
  { indexes = [], tenantField }: CollectionDeclaration,
  access: Access,
): readonly (readonly Field[])[] {
  const declared = indexes.map((entry) => named(fields, typeof entry === 'string' ? [entry] : entry));
  if (tenantField === undefined || !isWithinTenant(access.read)) return declared;
  const served = declared.some(([first]) => first?.name === tenantField);
  return served ? declared : [...declared, named(fields, [tenantField])];
}

function uniqueOf(fields: Fields, entry: Unique): readonly Field[] {
  if (typeof entry === 'string') return named(fields, [entry]);
  if (!('fields' in entry)) return named(fields, entry);
  const found = named(fields, entry.fields);
  return entry.ignoreCase === true ? found.map(ignoringCase) : found;
}

function named(fields: Fields, names: readonly string[]): readonly Field[] {
  return names.flatMap((name) => fields.get(name) ?? []);
}

/** An index serves what a declaration names. Without one, and for the program's own collections, `q` reads the documents. */
function searchOf(
  fields: Fields,
  declaration: CollectionDeclaration,
): Pick<Collection, 'searchFields' | 'searchIndex'> {
  const { search } = declaration;
  if (search === undefined) return { searchFields: defaultSearch(fields, declaration) };
  const names = 'fields' in search ? search.fields : search;
  if (names.length === 0) return { searchFields: [] };
  const language = 'fields' in search ? search.language : undefined;
  return { searchFields: names, searchIndex: createSearchIndex(names, language) };
}

/** Every string at the top level that is visible to all; ids are left out, because people do not search them for words. */
function defaultSearch(fields: Fields, declaration: CollectionDeclaration): readonly string[] {
  const left = new Set([
    ...Object.keys(declaration.references ?? {}),
    ...Object.keys(declaration.hidden ?? {}),
    declaration.tenantField,
  ]);
  return [...fields.values()]
    .filter(({ name, path, type, column }) => {
      return type === 'string' && path.length === 1 && column === undefined && !left.has(name);
    })
    .map(({ name }) => name);
}

/** Lets shared caches keep what anyone may read completely; they revalidate it before each use. */
function defaultCacheControl(access: Access, hides: boolean): string {
  return !hides && permission(access.read, 'read', anonymous) === 'granted'
    ? 'no-cache'
    : 'private, no-cache';
}

function ignore(): void {
  // The default discards warnings.
}

/**
 * The member of a 409 body that counts dependants where the declaration names none (§2.2): `products` gives `productCount`, `order-lines`
 * gives `orderLineCount`. English plurals by rule, not by dictionary.
 */
export function countName(collection: string): string {
  const words = singular(collection).split('-');
  const [first = '', ...rest] = words;
  return `${first}${rest.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('')}Count`;
}

export function singular(plural: string): string {
  if (plural.endsWith('ies') && plural.length > 4) return `${plural.slice(0, -3)}y`;
  for (const ending of ['sses', 'shes', 'ches', 'xes', 'zes']) {
    if (plural.endsWith(ending)) return plural.slice(0, -2);
  }
  const kept = ['ss', 'us', 'is'].some((ending) => plural.endsWith(ending));
  return plural.endsWith('s') && !kept ? plural.slice(0, -1) : plural;
}

/**
 * Bytes of UTF-8 that the texts of one index entry may take together, on both stores. An entry of PostgreSQL's B-tree takes at most 2704
 * bytes; PostgreSQL refuses a longer one in the middle of a commit, SQLite accepts it. The other 704 bytes hold the id that ends an entry
 * (255 at most), up to seven values of 8 bytes, and PostgreSQL's overhead.
 */
const indexedTextBytesMax = 2000;

/**
 * The bound of each text field: its even share of the index that leaves it least.
 * @param indexes the fields of every index, including those of unique fields and references
 */
function textBoundsOf(indexes: Iterable<readonly Field[]>): readonly TextBound[] {
  const bounds = new Map<string, TextBound>();
  for (const index of indexes) {
    const texts = index.filter(isText);
    const bytesMax = Math.floor(indexedTextBytesMax / texts.length);
    for (const { path } of texts) {
      const key = JSON.stringify(path);
      if (bytesMax < (bounds.get(key)?.bytesMax ?? Number.POSITIVE_INFINITY)) {
        bounds.set(key, { path, bytesMax });
      }
    }
  }
  return [...bounds.values()];
}

/** Clients write no text into columns, except for the id, which has a bound of its own. */
function isText(field: Field): boolean {
  return field.column === undefined && (field.type === 'string' || field.type === 'timestamp');
}

type RuleSetting = Reach & { readonly tenantField: string | undefined };

/** Resolves rules: `tenant` names its field, and a function gets its cache of conditions. Other rules stay as written. */
function resolveAccess(access: Access, setting: RuleSetting): Access {
  const { read, create, update, delete: remove } = access;
  return {
    read: resolveRule(read, setting),
    create: resolveRule(create, setting),
    update: resolveRule(update, setting),
    delete: resolveRule(remove, setting),
  };
}

function resolveFieldRules(
  rules: Readonly<Record<string, Rule>> | undefined,
  setting: RuleSetting,
): ReadonlyMap<string, Rule> {
  return new Map(Object.entries(rules ?? {}).map(([name, rule]) => [name, resolveRule(rule, setting)]));
}

export function resolveRule(rule: Rule, setting: RuleSetting): Rule {
  if (rule === 'tenant') {
    if (setting.tenantField === undefined) throw new Error('the rule tenant requires a tenantField');
    return { tenantIn: setting.tenantField };
  }
  if (typeof rule === 'string') return rule;
  if ('allow' in rule) return createConditionRule(rule, setting.fields, setting.through);
  if ('where' in rule) return resolveWhere(rule, setting);
  if ('anyOf' in rule) return { anyOf: rule.anyOf.map((part) => resolveRule(part, setting)) };
  if ('allOf' in rule) return { allOf: rule.allOf.map((part) => resolveRule(part, setting)) };
  return rule;
}

/** True if a list under this rule holds the resources of one tenant only. */
function isWithinTenant(rule: Rule): boolean {
  if (typeof rule === 'string') return rule === 'tenant';
  return 'allOf' in rule ? rule.allOf.some(isWithinTenant) : 'tenantIn' in rule;
}
