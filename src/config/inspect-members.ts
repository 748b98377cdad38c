/**
 * Checks the members of a collection's declaration one by one: indexes, uniqueness, references, search, body formats, caching and deprecation.
 */
import type { BodyFormat } from '../model/collection.ts';
import type { Field } from '../model/field.ts';
import { searchLanguages } from '../model/search/words.ts';
import { type Inspection, isRecord, kindOf, listed, namedField, suggestion } from './inspection.ts';
import { problemMembers } from './reserved-names.ts';
import { namedParts } from './shape.ts';

const indexFieldsMax = 8;
const memberName = /^[a-z][A-Za-z0-9]*$/;

export function inspectIndexing(inspection: Inspection): void {
  inspectIndexes(inspection);
  inspectUnique(inspection);
  inspectUnpatchable(inspection);
  inspectReferences(inspection);
  inspectSearch(inspection);
}

function inspectIndexes(inspection: Inspection): void {
  for (const entry of listed(inspection, 'indexes', inspection.declaration.indexes)) {
    const names: readonly unknown[] = Array.isArray(entry) ? entry : [entry];
    if (names.length === 0) inspection.refuse('indexes holds an empty list');
    if (names.length > indexFieldsMax)
      inspection.refuse(`indexes holds an index over more than ${indexFieldsMax} fields`);
    if (new Set(names).size < names.length)
      inspection.refuse('indexes holds an index that names a field twice');
    for (const name of names) {
      const field = namedField(inspection, 'indexes', name);
      if (field !== undefined && !isSingle(field)) {
        inspection.refuse(
          `indexes names "${field.name}"; an index takes single values, not ${pluralOf(field)}`,
        );
      }
    }
  }
}

function inspectUnique(inspection: Inspection): void {
  for (const entry of listed(inspection, 'unique', inspection.declaration.unique)) {
    const { fields: names = [], ignoreCase } = uniqueParts(inspection, entry);
    const fields = names.flatMap((name) => namedField(inspection, 'unique', name) ?? []);
    if (Array.isArray(entry) && entry.length === 0) inspection.refuse('unique holds an empty list');
    if (names.length > indexFieldsMax)
      inspection.refuse(`unique holds more than ${indexFieldsMax} fields together`);
    if (new Set(names).size < names.length) inspection.refuse('unique holds a list that names a field twice');
    for (const field of fields) {
      if (field.column !== undefined)
        inspection.refuse(`unique names "${field.name}", which the server sets`);
      else if (!isSingle(field)) {
        inspection.refuse(
          `unique names "${field.name}"; only single values can be unique, not ${pluralOf(field)}`,
        );
      }
    }
    if (ignoreCase === true && fields.length > 0 && !fields.some(({ type }) => type === 'string'))
      inspection.refuse(`unique ignores the case of "${fields[0]?.name}", which is not a string`);
  }
}

const uniqueMembers = ['fields', 'ignoreCase'];

function uniqueParts(
  { refuse }: Inspection,
  entry: unknown,
): { readonly fields?: readonly unknown[]; readonly ignoreCase?: unknown } {
  if (!isRecord(entry)) return { fields: Array.isArray(entry) ? entry : [entry] };
  for (const name of Object.keys(entry)) {
    if (uniqueMembers.includes(name)) continue;
    refuse(`unique has an unknown member "${name}"${suggestion(name, uniqueMembers)}`);
  }
  const { fields, ignoreCase } = entry;
  if (!Array.isArray(fields) || fields.length === 0) {
    refuse("unique must name its fields: { fields: ['email'], ignoreCase: true }");
    return {};
  }
  if (ignoreCase !== undefined && typeof ignoreCase !== 'boolean')
    refuse(`unique.ignoreCase must be true or false, not ${kindOf(ignoreCase)}`);
  return { fields, ignoreCase };
}

function inspectUnpatchable(inspection: Inspection): void {
  for (const name of listed(inspection, 'unpatchable', inspection.declaration.unpatchable)) {
    const field = namedField(inspection, 'unpatchable', name);
    if (field === undefined) continue;
    if (field.column !== undefined) {
      inspection.refuse(
        `unpatchable names "${field.name}", which clients cannot change anyway; leave it out`,
      );
    } else if (field.path.length > 1) {
      inspection.refuse(`unpatchable names "${field.name}"; only a field at the top level can be fixed`);
    }
  }
}

/** A response with `expand` has this member beside those of the document (§4.16.1). */
const includedMember = 'included';

function inspectReferences(inspection: Inspection): void {
  const { references } = inspection.declaration;
  if (isRecord(references) && inspection.fields.has(includedMember)) {
    inspection.refuse(
      `schema declares "${includedMember}", where responses with expand have what the references lead to; rename the field`,
    );
  }
  for (const [name, reference] of namedParts(references, 'references', inspection.refuse)) {
    const field = namedField(inspection, 'references', name);
    if (
      field !== undefined &&
      (field.type !== 'string' || field.path.length > 1 || field.column !== undefined)
    ) {
      inspection.refuse(
        `references names "${name}"; a reference is a string at the top level that holds an id`,
      );
    }
    inspectTarget(inspection, name, reference);
  }
}

function inspectTarget(inspection: Inspection, name: string, reference: unknown): void {
  const place = `references.${name}`;
  if (!isRecord(reference) || typeof reference.collection !== 'string') {
    inspection.refuse(`${place} must be { collection: 'name' }`);
    return;
  }
  const { collection, countAs } = reference as { collection: string; countAs?: unknown };
  inspectOnDelete(inspection, name, reference);
  if (!inspection.collections.has(collection)) {
    const meant = suggestion(collection, inspection.collections);
    inspection.refuse(`${place} refers to "${collection}", which is not a collection${meant}`);
  }
  if (countAs === undefined) return;
  if (typeof countAs !== 'string' || !memberName.test(countAs)) {
    inspection.refuse(`${place}.countAs must be a camelCase name such as productCount`);
  } else if (problemMembers.has(countAs)) {
    inspection.refuse(`${place}.countAs is "${countAs}", which every error body has already`);
  }
}

const onDeletes = ['restrict', 'cascade', 'setNull'] as const;

/** A reference that a deletion removes must be one that a document may be without. */
function inspectOnDelete(
  { declaration, refuse }: Inspection,
  name: string,
  { onDelete }: Readonly<Record<string, unknown>>,
): void {
  const place = `references.${name}.onDelete`;
  if (onDelete === undefined) return;
  if (typeof onDelete !== 'string' || !onDeletes.some((each) => each === onDelete)) {
    const written = typeof onDelete === 'string' ? `"${onDelete}"` : kindOf(onDelete);
    const meant = typeof onDelete === 'string' ? suggestion(onDelete, onDeletes) : '';
    refuse(`${place} must be restrict, cascade or setNull, not ${written}${meant}`);
    return;
  }
  if (onDelete !== 'setNull') return;
  const { schema, unpatchable, tenantField, stamp = {} } = declaration;
  if (schema.required?.includes(name) === true) {
    refuse(`${place} is setNull, but the schema requires "${name}"; make it optional, or use cascade`);
  }
  if (
    (Array.isArray(unpatchable) && unpatchable.includes(name)) ||
    tenantField === name ||
    Object.hasOwn(stamp, name)
  ) {
    refuse(`${place} is setNull, but "${name}" cannot be changed after creation`);
  }
}

function inspectSearch(inspection: Inspection): void {
  const search: unknown = inspection.declaration.search;
  if (isRecord(search)) inspectSearchObject(inspection, search);
  const property = isRecord(search) ? 'search.fields' : 'search';
  const names = isRecord(search) ? (search.fields ?? []) : search;
  for (const name of listed(inspection, property, names)) {
    const field = namedField(inspection, 'search', name);
    if (field === undefined) continue;
    const ofText = field.type === 'string' || (field.type === 'array' && field.item === 'string');
    if (!ofText || field.path.length > 1 || field.column !== undefined) {
      inspection.refuse(
        `search names "${field.name}"; only strings and lists of strings at the top level are searched`,
      );
    }
  }
}

const searchMembers = ['fields', 'language'];

function inspectSearchObject(inspection: Inspection, search: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(search)) {
    if (searchMembers.includes(name)) continue;
    inspection.refuse(`search has an unknown member "${name}"${suggestion(name, searchMembers)}`);
  }
  if (search.fields === undefined) inspection.refuse("search must name its fields: { fields: ['title'] }");
  const { language } = search;
  if (language === undefined || searchLanguages.some((known) => known === language)) return;
  const meant = typeof language === 'string' ? suggestion(language, searchLanguages) : '';
  inspection.refuse(
    `search.language is ${typeof language === 'string' ? `"${language}"` : kindOf(language)}, which is not one of ${searchLanguages.join(', ')}${meant}`,
  );
}

function isSingle(field: Field): boolean {
  return field.type !== 'array' && field.type !== 'json';
}

function pluralOf(field: Field): string {
  return field.type === 'array' ? 'lists' : 'objects';
}

const bodyFormats: ReadonlySet<unknown> = new Set<BodyFormat>(['json', 'form', 'multipart', 'text']);
const fieldValue = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;
const isoTime = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/;
const unsafeInLink = /[<>" ]/;
const webScheme = /^https?:/;

export function inspectConduct(inspection: Inspection): void {
  const { declaration, refuse } = inspection;
  inspectFormats(inspection);
  const { cacheControl } = declaration;
  if (typeof cacheControl === 'string' && !fieldValue.test(cacheControl)) {
    refuse('cacheControl must be a value of Cache-Control, such as "max-age=60"');
  }
  inspectDeprecation(inspection);
}

function inspectFormats(inspection: Inspection): void {
  const { declaration, fields, refuse } = inspection;
  const formats = listed(inspection, 'formats', declaration.formats);
  if (declaration.formats !== undefined && formats.length === 0)
    refuse('formats must name at least one body format');
  for (const format of formats) {
    if (!bodyFormats.has(format))
      refuse(`formats holds ${quoted(format)}; the formats are json, form, multipart and text`);
  }
  const { textField } = declaration;
  const takesText = formats.includes('text');
  if (textField === undefined) {
    if (takesText) refuse('formats holds "text", which needs textField to say which field the text becomes');
    return;
  }
  if (!takesText) refuse(`textField is "${textField}", which needs "text" among the formats`);
  const field = fields.get(textField);
  if (field === undefined) {
    refuse(`textField names "${textField}", which is not a field`);
    return;
  }
  if (field.type !== 'string' || field.column !== undefined || field.path.length > 1) {
    refuse(`textField names "${textField}", which is not a string that clients write`);
  }
  const others = requiredOf(inspection).filter((name) => name !== textField);
  if (others.length > 0) {
    refuse(
      `a text body sets only "${textField}", and "${others[0]}" is required too: make it optional or leave text out of formats`,
    );
  }
}

function inspectDeprecation({ declaration, refuse }: Inspection): void {
  const deprecation: unknown = declaration.deprecation;
  if (deprecation === undefined) return;
  if (!isRecord(deprecation)) {
    refuse(`deprecation must be an object, not ${kindOf(deprecation)}`);
    return;
  }
  const since = timeOf(deprecation.since);
  if (since === undefined)
    refuse('deprecation.since must be an ISO 8601 UTC time such as 2027-01-31T00:00:00Z');
  if (deprecation.sunset !== undefined) {
    const sunset = timeOf(deprecation.sunset);
    if (sunset === undefined)
      refuse('deprecation.sunset must be an ISO 8601 UTC time such as 2027-01-31T00:00:00Z');
    else if (since !== undefined && sunset < since)
      refuse('deprecation.sunset must not be before deprecation.since');
  }
  const { link } = deprecation as { link?: unknown };
  if (link !== undefined && !isLink(link)) refuse('deprecation.link must be an http or https URL, or a path');
}

function timeOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !isoTime.test(value)) return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : ms;
}

function isLink(value: unknown): boolean {
  if (typeof value !== 'string' || !fieldValue.test(value) || unsafeInLink.test(value)) return false;
  return value.startsWith('/') || (webScheme.test(value) && URL.canParse(value));
}

function requiredOf({ declaration }: Inspection): readonly string[] {
  const required: unknown = declaration.schema.required;
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : kindOf(value);
}
