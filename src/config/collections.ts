/**
 * From declarations to collections: finds every mistake (inspect-collection.ts), then fills in the defaults that
 * model/collection.ts documents and resolves the names. What comes out needs no further checking anywhere.
 */
import { type Access, permission } from '../model/access.ts';
import type {
  BodyFormat,
  Collection,
  CollectionDeclaration,
  CollectionReference,
} from '../model/collection.ts';
import type { Field, Fields } from '../model/field.ts';
import { anonymous } from '../model/principal.ts';
import { ConfigurationError } from './configuration-error.ts';
import { countName } from './count-name.ts';
import { fieldsOf } from './fields.ts';
import { inspectCollections } from './inspect-collection.ts';
import { isWithinTenant, resolveAccess, resolveFieldRules } from './resolve-rule.ts';
import { textBoundsOf } from './text-bounds.ts';

const defaultAccess: Access = {
  read: 'principal',
  create: 'principal',
  update: 'principal',
  delete: 'principal',
};
const defaultFormats: readonly BodyFormat[] = ['json', 'form', 'multipart'];

type Referring = CollectionReference & { readonly from: string };

/**
 * @param warn takes a sentence about what works but will surprise
 * @throws ConfigurationError with every mistake in every declaration
 */
export function resolveCollections(
  declarations: Readonly<Record<string, CollectionDeclaration>>,
  warn: (sentence: string) => void = ignore,
): ReadonlyMap<string, Collection> {
  const mistakes = inspectCollections(declarations, warn);
  if (mistakes.length > 0) throw new ConfigurationError(mistakes);
  const referring: Referring[] = Object.entries(declarations).flatMap(([from, declaration]) =>
    referencesOf(from, declaration).map((reference) => ({ ...reference, from })),
  );
  return new Map(
    Object.entries(declarations).map(([name, declaration]) => [name, resolve(name, declaration, referring)]),
  );
}

/** A collection of the program's own, whose name is kept from the declarations of users. */
export function resolveBuiltIn(name: string, declaration: CollectionDeclaration): Collection {
  return resolve(name, declaration, []);
}

function resolve(
  name: string,
  declaration: CollectionDeclaration,
  referring: readonly Referring[],
): Collection {
  const fields = fieldsOf(declaration.schema);
  const { tenantField } = declaration;
  const setting = { fields, tenantField };
  const access = resolveAccess({ ...defaultAccess, ...declaration.access }, setting);
  const hidden = resolveFieldRules(declaration.hidden, setting);
  const indexes = indexesOf(fields, declaration, access);
  const unique = named(fields, declaration.unique ?? []);
  const holdIds = named(fields, Object.keys(declaration.references ?? {}));
  return {
    name,
    description: declaration.description ?? '',
    schema: declaration.schema,
    fields,
    access,
    readOnly: resolveFieldRules(declaration.readOnly, setting),
    hidden,
    tenantField,
    conceal: declaration.conceal ?? true,
    putCreates: declaration.putCreates ?? false,
    softDelete: declaration.softDelete ?? false,
    requireMatch: declaration.requireMatch ?? false,
    indexes,
    unique,
    textBounds: textBoundsOf([...indexes, ...[...unique, ...holdIds].map((field) => [field])]),
    unpatchable: new Set([
      ...(declaration.unpatchable ?? []),
      ...(tenantField === undefined ? [] : [tenantField]),
    ]),
    required: new Set(declaration.schema.required),
    references: referencesOf(name, declaration),
    dependants: referring.filter((reference) => reference.collection === name),
    formats: new Set(declaration.formats ?? defaultFormats),
    textField: declaration.textField,
    searchFields: declaration.search ?? defaultSearch(fields, declaration),
    cacheControl: declaration.cacheControl ?? defaultCacheControl(access, hidden.size > 0),
    deprecation: declaration.deprecation,
    examples: declaration.examples ?? [],
  };
}

function referencesOf(from: string, declaration: CollectionDeclaration): readonly CollectionReference[] {
  return Object.entries(declaration.references ?? {}).map(([field, { collection, countAs }]) => ({
    field,
    collection,
    countAs: countAs ?? countName(from),
  }));
}

/** Those declared, and one for the lists of a tenant, which cost the same however many tenants there are. */
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

function named(fields: Fields, names: readonly string[]): readonly Field[] {
  return names.flatMap((name) => fields.get(name) ?? []);
}

/** Every declared string at the top level that is hidden from nobody; ids, in which no one looks for words, are left out. */
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

/** A shared cache may keep what anyone may read, and all of it; every use of it is revalidated all the same. */
function defaultCacheControl(access: Access, hides: boolean): string {
  return !hides && permission(access.read, 'read', anonymous) === 'granted'
    ? 'no-cache'
    : 'private, no-cache';
}

function ignore(): void {
  // A caller that shows no warnings is served all the same.
}
