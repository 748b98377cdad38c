/**
 * Finds every mistake in the declarations of collections, each as one sentence that names the collection and the property. Configurations may
 * be plain JavaScript, so nothing relies on the types of `CollectionDeclaration`.
 */
import { type TObject, type TSchema, Type } from 'typebox';
import {
  type CollectionDeclaration,
  type ComputedField,
  type Stamp,
  stampValues,
} from '../model/collection.ts';
import { CompiledSchema, type SchemaNode, withDefaults } from './declared-schema.ts';
import { fieldsOf, propertiesOf, type Schema } from './fields.ts';
import { inspectAccess, inspectFieldRules, keptApart, reachesOf } from './inspect-access.ts';
import { inspectFiles } from './inspect-files.ts';
import { inspectConduct, inspectIndexing } from './inspect-members.ts';
import { inspectPresentation } from './inspect-presentation.ts';
import { schemaMistakes, sizeMistakes } from './inspect-schema.ts';
import { type Inspection, isRecord, kindOf, listed, suggestion } from './inspection.ts';
import { filterConnectives, madeMembers, queryParameters, reservedCollections } from './reserved-names.ts';
import { choiceOf, flagShape, inspectShape, namedParts, stringShape, unshaped } from './shape.ts';
import { compileUnknownMembers, isComposed } from './unknown-members.ts';

const collectionName = /^[a-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*$/;
const fieldName = /^[@$]?[\p{L}_][\p{L}\p{N}_-]*$/u;
/** Names of the owner, the rank and the entity tag beside fields that take the plain names. */
const ownNames: ReadonlySet<string> = new Set(['$etag', '$owner', '$rank']);
const nameCharactersMax = 63;

const collectionShape = Type.Object(
  {
    ...unshaped('schema', 'access', 'readOnly', 'hidden', 'tenantField', 'indexes', 'unique', 'unpatchable'),
    ...unshaped('references', 'formats', 'search', 'stamp', 'deprecation', 'examples', 'hooks', 'actions'),
    ...unshaped('computed'),
    ...unshaped('labels', 'help', 'title', 'groups', 'display'),
    ...{ conceal: flagShape, putCreates: flagShape, softDelete: flagShape, requireMatch: flagShape },
    ...{ description: stringShape, textField: stringShape, cacheControl: stringShape },
    actors: Type.Optional(
      choiceOf(['administrators', 'readers'], {
        must: "must be 'administrators' or 'readers'",
        shows: 'nearest',
      }),
    ),
  } satisfies Record<keyof CollectionDeclaration, TSchema>,
  { calls: 'property of a collection' },
);

/** Built-in collections that fields may refer to. */
const referableCollections: readonly string[] = ['users'];

/** One sentence for each mistake in all declarations together. */
export function inspectCollections(
  declarations: Readonly<Record<string, CollectionDeclaration>>,
  warn: (sentence: string) => void,
): readonly string[] {
  if (!isRecord(declarations)) return [`collections must be an object, not ${kindOf(declarations)}`];
  const mistakes: string[] = [];
  const names = new Set(Object.keys(declarations));
  const collections = new Set([...names, ...referableCollections]);
  inspectTwins(names, mistakes);
  const sizes = new Map(
    Object.values(declarations)
      .filter(isSchema)
      .map((each) => [each, sizeMistakes(schemaWithComputed(each), 'schema')] as const),
  );
  const reachOf = reachesOf(declarations, (declaration) =>
    sizes.get(declaration)?.length === 0 ? fieldsOf(schemaWithComputed(declaration)) : undefined,
  );
  for (const [name, declaration] of Object.entries(declarations)) {
    const refuse = (predicate: string): void => void mistakes.push(`collection ${name}: ${predicate}`);
    inspectName(name, refuse);
    const tooLarge = sizes.get(declaration);
    if (tooLarge === undefined) {
      refuse('schema must be a Type.Object({ ... })');
      continue;
    }
    if (tooLarge.length > 0) {
      for (const mistake of tooLarge) refuse(mistake);
      continue;
    }
    inspectComputed(declaration, refuse);
    const schema = schemaWithComputed(declaration);
    inspectCollection({
      name,
      declaration: { ...declaration, schema },
      fields: fieldsOf(schema),
      through: reachOf(name)?.through,
      collections,
      refuse,
      warn: (predicate) => warn(`collection ${name}: ${predicate}`),
    });
  }
  return mistakes;
}

function inspectCollection(inspection: Inspection): void {
  inspectShape(collectionShape, inspection.declaration, '', inspection.refuse);
  inspectProperties(inspection);
  const isSound = inspectSchema(inspection);
  inspectRulesAndIndexes(inspection);
  inspectConduct(inspection);
  if (isSound) inspectExamples(inspection);
}

/** Checks what is said of collections and of accounts alike. */
export function inspectRulesAndIndexes(inspection: Inspection): void {
  inspectAccess(inspection);
  inspectFieldRules(inspection);
  inspectIndexing(inspection);
  inspectHooks(inspection);
  inspectStamps(inspection);
  inspectPresentation(inspection);
}

/** SoundParts entries of `computed`, by name. */
function computedOf({ computed }: CollectionDeclaration): readonly (readonly [string, ComputedField])[] {
  const declared: unknown = computed;
  return isRecord(declared)
    ? Object.entries(declared).filter((entry): entry is [string, ComputedField] => isComputed(entry[1]))
    : [];
}

function isComputed(field: unknown): boolean {
  return isRecord(field) && isRecord(field.schema) && typeof field.compute === 'function';
}

/** The schema of what is stored: computed fields are optional members, because content does not have them. */
export function schemaWithComputed(declaration: CollectionDeclaration): TObject {
  const { schema } = declaration;
  const fields = computedOf(declaration);
  if (fields.length === 0) return schema;
  const properties = {
    ...schema.properties,
    ...Object.fromEntries(fields.map(([name, field]) => [name, field.schema])),
  };
  // TypeBox keeps internal data in properties that are not enumerable.
  const copy: object = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
  return Object.assign(copy, { properties }) as TObject;
}

function inspectComputed(declaration: CollectionDeclaration, refuse: (predicate: string) => void): void {
  for (const [name, field] of namedParts(declaration.computed, 'computed', refuse)) {
    if (!isComputed(field)) refuse(`computed.${name} must be what computed(schema, function) returns`);
    if (Object.hasOwn(declaration.schema.properties, name))
      refuse(`computed.${name} is a field of the schema too, which clients write`);
  }
}

function inspectName(name: string, refuse: (predicate: string) => void): void {
  if (!collectionName.test(name) || name.length > nameCharactersMax) {
    refuse(
      `the name must start with a lower-case letter and hold only letters, digits and single hyphens, at most ${nameCharactersMax}`,
    );
  } else if (reservedCollections.has(name.toLowerCase()))
    refuse('the name is reserved for a built-in resource or a table of the program');
}

/** Table names are not case-sensitive. */
function inspectTwins(names: ReadonlySet<string>, mistakes: string[]): void {
  const seen = new Map<string, string>();
  for (const name of names) {
    const twin = seen.get(name.toLowerCase());
    if (twin !== undefined) mistakes.push(`collection ${name}: the name differs from ${twin} only in case`);
    seen.set(name.toLowerCase(), name);
  }
}

export function inspectProperties(inspection: Inspection): void {
  const properties = propertiesOf(inspection.declaration.schema);
  if (properties.length === 0) inspection.refuse('schema has no properties');
  inspectFiles(inspection);
  for (const [name] of properties) {
    if (madeMembers.has(name))
      inspection.refuse(`${declares(inspection, [name])}, which the server sets; leave it out`);
    else if (queryParameters.has(name)) {
      inspection.warn(`"${name}" is a query parameter too; filter on the field as ${name}[eq]=`);
    } else if (filterConnectives.has(name)) {
      inspection.warn(`"${name}" is a connective of JSON filters, which cannot name the field`);
    }
  }
  for (const path of dottedTwins(inspection.declaration.schema, inspection.fields))
    inspection.refuse(`${declares(inspection, path)} beside a nested member of this name`);
  for (const { path } of inspection.fields.values()) {
    const name = path.at(-1) ?? '';
    if (!fieldName.test(name) || name.length > nameCharactersMax) {
      inspection.refuse(
        `${declares(inspection, path)}; a name holds letters, digits, _ and -, at most ${nameCharactersMax}, and starts with a letter, which @ or $ may precede`,
      );
    } else if (ownNames.has(path.join('.'))) {
      inspection.refuse(`${declares(inspection, path)}, which Comity names a field of its own`);
    } else if (name in Object.prototype) {
      // Compiled validators look a member up by name and would find the inherited one in every document.
      inspection.refuse(`${declares(inspection, path)}, a name that every JavaScript object has`);
    }
  }
}

/** A name with a dot that a nested field has too. */
function* dottedTwins(
  schema: Schema,
  fields: Inspection['fields'],
  above: readonly string[] = [],
): Generator<readonly string[]> {
  for (const [name, property] of propertiesOf(schema)) {
    const path = [...above, name];
    if (name.includes('.') && fields.get(path.join('.'))?.path.length !== path.length) yield path;
    yield* dottedTwins(property, fields, path);
  }
}

/** The beginning of a sentence about a name, which says where it stands. */
function declares({ declaration: { computed = {} } }: Inspection, path: readonly string[]): string {
  const place = Object.hasOwn(computed, path[0] ?? '') ? 'computed' : 'schema';
  return `${place} declares "${path.join('.')}"`;
}

/** @returns whether the schema can be compiled */
export function inspectSchema({ declaration, refuse }: Inspection): boolean {
  const mistakes = schemaMistakes(declaration.schema, 'schema');
  for (const mistake of mistakes) refuse(mistake);
  return mistakes.length === 0;
}

export function isSchema(declaration: unknown): boolean {
  if (!isRecord(declaration) || !isRecord(declaration.schema)) return false;
  return declaration.schema.type === 'object' && isRecord(declaration.schema.properties);
}

const errorsShownMax = 3;

/**
 * Checks that a POST would accept every example: people copy them, and so does the start-up text. References are not followed; an example may
 * name a resource that does not exist yet.
 */
function inspectExamples(inspection: Inspection): void {
  const schema: object = inspection.declaration.schema;
  const compiled = new CompiledSchema(schema as SchemaNode);
  listed(inspection, 'examples', inspection.declaration.examples).forEach((example, index) => {
    const place = `examples[${index}]`;
    if (!isRecord(example)) {
      inspection.refuse(`${place} must be an object, not ${kindOf(example)}`);
      return;
    }
    for (const name of unknownIn(inspection, example, compiled)) {
      inspection.refuse(`${place} has the member "${name}", which is not a field`);
    }
    const whole = withDefaults(schema, example);
    if (compiled.check(whole)) return;
    for (const { pointer, message } of compiled.faultsOf(schema as SchemaNode, whole, errorsShownMax))
      inspection.refuse(`${place}${pointer} is not valid: ${message}`);
  });
}

function unknownIn(
  { declaration }: Inspection,
  example: SchemaNode,
  compiled: CompiledSchema,
): readonly string[] {
  const { schema } = declaration;
  const root: object = schema;
  if (isComposed(root as SchemaNode)) {
    const unknown = compileUnknownMembers(root as SchemaNode, compiled, errorsShownMax)(example);
    return unknown.map(({ pointer }) => pointer.slice(1));
  }
  const { additionalProperties: additional } = schema as { additionalProperties?: unknown };
  if (additional !== undefined && additional !== false) return [];
  return Object.keys(example).filter((name) => !Object.hasOwn(schema.properties, name));
}

const hookNames: ReadonlySet<string> = new Set(['beforeWrite', 'afterRead']);

function inspectHooks({ declaration, refuse }: Inspection): void {
  const { cacheControl, hooks } = declaration;
  for (const [name, hook] of namedParts(hooks, 'hooks', refuse)) {
    if (!hookNames.has(name)) refuse(`hooks.${name} is not a hook${suggestion(name, hookNames)}`);
    else if (typeof hook !== 'function') refuse(`hooks.${name} must be a function, not ${kindOf(hook)}`);
  }
  if (
    isRecord(hooks) &&
    hooks.afterRead !== undefined &&
    typeof cacheControl === 'string' &&
    !keptApart.test(cacheControl)
  ) {
    refuse(
      'cacheControl lets shared caches store responses that hooks.afterRead makes for one caller; use private or no-store',
    );
  }
}

// Checks the stamped fields of a collection: declared optional strings at the top level, and values that a request has.

const values: ReadonlySet<string> = new Set(stampValues);
const moments: ReadonlySet<string> = new Set<Stamp['on']>(['create', 'update']);
const members: ReadonlySet<string> = new Set<keyof Stamp>(['value', 'on']);

function inspectStamps(inspection: Inspection): void {
  const { declaration, refuse } = inspection;
  for (const [name, stamp] of namedParts(declaration.stamp, 'stamp', refuse)) {
    inspectField(inspection, name);
    inspectStamp(`stamp.${name}`, stamp, refuse);
  }
}

function inspectField({ declaration, fields, refuse }: Inspection, name: string): void {
  const { computed = {}, tenantField, textField, schema } = declaration;
  const field = fields.get(name);
  if (field === undefined) {
    refuse(`stamp names "${name}", which is not a field${suggestion(name, fields.keys())}`);
    return;
  }
  if (field.column !== undefined) refuse(`stamp names "${name}", which the server sets anyway`);
  else if (field.path.length > 1 || (field.type !== 'string' && field.type !== 'timestamp'))
    refuse(`stamp names "${name}"; only strings at the top level can be stamped`);
  else if (Object.hasOwn(computed, name)) refuse(`stamp names "${name}", which is computed`);
  else if (name === tenantField) refuse(`stamp names "${name}", which is set as the tenantField anyway`);
  else if (name === textField) refuse(`stamp names "${name}", which is the textField`);
  else if ((schema.required ?? []).includes(name))
    refuse(
      `stamp names "${name}", which the schema requires of clients: make it Type.Optional(...), because they cannot send it`,
    );
}

function inspectStamp(place: string, stamp: unknown, refuse: (predicate: string) => void): void {
  const { value, on } = isRecord(stamp) ? stamp : { value: stamp, on: undefined };
  if (isRecord(stamp)) {
    for (const name of Object.keys(stamp))
      if (!members.has(name))
        refuse(`${place} has the member "${name}"; the members are value and on${suggestion(name, members)}`);
  }
  if (typeof value !== 'string' || !values.has(value)) {
    const meant = typeof value === 'string' ? suggestion(value, values) : '';
    refuse(`${place} must be 'principal', 'tenant' or 'time', or { value, on }${meant}`);
  }
  if (on !== undefined && !(typeof on === 'string' && moments.has(on))) {
    const meant = typeof on === 'string' ? suggestion(on, moments) : '';
    refuse(`${place}.on must be 'create' or 'update'${meant}`);
  }
}
