/**
 * The actions of a configuration (model/logic/actions.ts): finds every mistake in their declarations, and resolves them. Configurations may be
 * plain JavaScript, so nothing relies on the types of `action`.
 */
import { type TObject, type TSchema, Type } from 'typebox';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import type { Rule } from '../model/access.ts';
import type { Collection, CollectionDeclaration } from '../model/collection.ts';
import type { Fields } from '../model/field.ts';
import type { Through } from '../model/filter.ts';
import type { ActionMethod, Output } from '../model/logic/actions.ts';
import type { RefusalStatus } from '../model/logic/logic.ts';
import { resolveRule } from './collections.ts';
import { inspectRule, throughAmong } from './inspect-access.ts';
import { inspectUploads } from './inspect-files.ts';
import { schemaMistakes, sizeMistakes } from './inspect-schema.ts';
import { isRecord, kindOf } from './inspection.ts';
import { collectionPaths, reservedPaths } from './reserved-names.ts';
import {
  choiceOf,
  functionAs,
  inspectShape,
  namedParts,
  type Reporter,
  stringShape,
  unshaped,
} from './shape.ts';

/** A declared action, complete. */
export type DeclaredAction = {
  readonly name: string;
  readonly on: 'member' | 'collection' | 'base';
  /** Undefined: on the base. */
  readonly collection: Collection | undefined;
  readonly method: ActionMethod;
  /** From the base: `/tickets/{id}/merge`. */
  readonly pattern: string;
  /** The names of its captures, in order, except the id of the member. */
  readonly captures: readonly string[];
  readonly input: TObject | undefined;
  readonly output: TSchema | Output | undefined;
  /** The collections whose ids members of the input hold. */
  readonly references: ReadonlyMap<string, string>;
  readonly rule: Rule;
  /** With their statuses where they are declared; undefined: any code. */
  readonly codes: ReadonlyMap<string, number | undefined> | undefined;
  readonly summary: string | undefined;
  readonly description: string | undefined;
  readonly example: { readonly input?: unknown; readonly output?: unknown };
  readonly handler: (acting: never) => unknown;
};

/** Statuses of a refusal in an application's own words. */
export const refusalStatuses: ReadonlySet<number> = new Set<RefusalStatus>([
  400, 402, 403, 404, 409, 410, 422, 423, 424, 429, 451,
]);

const methods = ['GET', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE'] as const satisfies ActionMethod[];
const actionShape = Type.Object(
  {
    ...unshaped('on', 'path', 'input', 'output', 'references', 'access', 'codes'),
    method: choiceOf(methods, { shows: 'value' }),
    handler: functionAs(),
    ...{ summary: stringShape, description: stringShape },
    example: Type.Optional(
      Type.Refine(Type.Unknown({ must: 'must be an object', shows: 'kind' }), (example) => isRecord(example)),
    ),
  },
  { calls: 'member of an action' },
);
const outputKinds: ReadonlySet<unknown> = new Set<Output['kind']>(['text', 'bytes', 'stream', 'redirect']);
const redirectStatuses: ReadonlySet<unknown> = new Set([303, 307, 308]);
const wordedRules: ReadonlySet<string> = new Set(['public', 'principal', 'owner', 'tenant', 'administrator']);
const actionName = /^[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*$/;
const segment = /^(?:[A-Za-z0-9._~-]+|\{[A-Za-z][A-Za-z0-9]*\})$/;
const codeName = /^[a-z][a-z0-9_]{0,63}$/;
const mediaType = /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+(?:;\s*[A-Za-z0-9-]+=[A-Za-z0-9._-]+)*$/;
const fieldValue = /^[\x21-\x7e](?:[\x20-\x7e]{0,2000}[\x21-\x7e])?$/;
const fileName = /^(?!\.*$)[^\p{Cc}"\\/]{1,255}$/u;

/** Paths of the program itself, below a member and below a collection. */
const ownPaths = { member: new Set(['history']), collection: new Set(collectionPaths) } as const;

type Declared = Readonly<Record<string, unknown>>;

type Subject = {
  readonly name: string;
  readonly declared: Declared;
  readonly on: DeclaredAction['on'];
  /** The name of its collection. */
  readonly of: string | undefined;
  /** Receives the predicate of a sentence whose subject is the action. */
  readonly refuse: (predicate: string) => void;
};

/**
 * @param written the declaration of the configuration
 * @param collections the resolved ones; empty if there are mistakes in them
 * @param mistakes receives a sentence for each mistake
 */
export function resolveActions(
  written: Declared,
  collections: ReadonlyMap<string, Collection>,
  mistakes: string[],
): readonly DeclaredAction[] {
  const declared = isRecord(written.collections) ? written.collections : {};
  const found = Object.entries(declared).flatMap(([of, declaration]) =>
    isRecord(declaration)
      ? subjectsOf(declaration.actions, of, `collection ${of}: actions`, mistakes)
      : ([] as Subject[]),
  );
  found.push(...subjectsOf(written.actions, undefined, 'actions', mistakes));
  const taken = new Map<string, Subject>();
  return found.flatMap((subject) => {
    const before = mistakes.length;
    const pattern = patternOf(subject, new Set(Object.keys(declared)));
    inspectParts(subject);
    inspectReferences(subject, declared);
    const collection = collections.get(subject.of ?? '');
    const through = collection === undefined ? undefined : throughAmong(collections, collection);
    inspectAccess(subject, declared[subject.of ?? ''], collection, through);
    if (pattern !== undefined) inspectTwin(subject, pattern, taken);
    const isUsable = mistakes.length === before && pattern !== undefined;
    return isUsable && (subject.of === undefined || collection !== undefined)
      ? [resolve(subject, pattern, collection, through)]
      : [];
  });
}

function subjectsOf(
  actions: unknown,
  of: string | undefined,
  place: string,
  mistakes: string[],
): readonly Subject[] {
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  return namedParts(actions, place, report).flatMap(([name, declared]) => {
    const refuse: Reporter = (predicate) => report(`${place}.${name}: ${predicate}`);
    if (!isRecord(declared)) {
      refuse(`must be what action(...) returns, not ${kindOf(declared)}`);
      return [];
    }
    if (!actionName.test(name))
      refuse('the name must start with a letter and hold only letters, digits and single hyphens');
    return [{ name, declared, of, on: placeOf(declared.on, of, refuse), refuse }];
  });
}

function placeOf(on: unknown, of: string | undefined, refuse: Subject['refuse']): DeclaredAction['on'] {
  if (of === undefined) {
    if (on !== undefined) refuse('on is only for the actions of a collection; this one is on its own path');
    return 'base';
  }
  if (on === 'member' || on === 'collection') return on;
  refuse(`on must be 'member' or 'collection', not ${JSON.stringify(on) ?? kindOf(on)}`);
  return 'member';
}

function patternOf(
  { name, declared, on, of, refuse }: Subject,
  collections: ReadonlySet<string>,
): string | undefined {
  const path = declared.path ?? `/${name}`;
  const segments = typeof path === 'string' && path.startsWith('/') ? path.split('/').slice(1) : [];
  if (
    segments.length === 0 ||
    !segments.every((part) => segment.test(part) && part !== '.' && part !== '..')
  ) {
    refuse(
      `path must be a path such as /merge or /merge/{into}, not ${JSON.stringify(path) ?? kindOf(path)}`,
    );
    return undefined;
  }
  const [first = ''] = segments;
  const captures = capturesOf(segments);
  const repeated = captures.find((capture, index) => captures.indexOf(capture) !== index);
  if (repeated !== undefined) refuse(`path has the capture {${repeated}} more than once`);
  if (on === 'member' && captures.includes('id')) refuse('path names a capture {id}, which is the member');
  if (first.startsWith('{') && on !== 'member') {
    refuse(
      `path begins with a capture, which would stand for ${on === 'base' ? 'any collection' : 'any id'}`,
    );
  } else if (on === 'base') {
    if (collections.has(first)) refuse(`path begins with /${first}, which is a collection`);
    else if (reservedPaths.has(first.toLowerCase()))
      refuse(`path begins with /${first}, which is reserved for a built-in resource`);
  } else if (ownPaths[on].has(first))
    refuse(`path begins with /${first}, which the program itself serves there`);
  return on === 'base' ? (path as string) : on === 'member' ? `/${of}/{id}${path}` : `/${of}${path}`;
}

function capturesOf(segments: readonly string[]): readonly string[] {
  return segments.flatMap((part) => (part.startsWith('{') ? [part.slice(1, -1)] : []));
}

/** Two actions may share a path with different methods, and then name its captures alike. */
function inspectTwin(subject: Subject, pattern: string, taken: Map<string, Subject>): void {
  const shape = pattern.replaceAll(/\{[^}]*\}/g, '{}');
  const method = String(subject.declared.method);
  const twin = taken.get(`${method} ${shape}`);
  if (twin !== undefined)
    subject.refuse(`has the method and the path of the action ${twin.name}: ${method} ${pattern}`);
  const sharing = [...taken.entries()].find(([key]) => key.endsWith(` ${shape}`))?.[1];
  const spelt = sharing === undefined ? pattern : patternOf({ ...sharing, refuse: ignore }, new Set());
  if (twin === undefined && spelt !== pattern) {
    subject.refuse(
      `path ${pattern} names its captures differently from the action ${sharing?.name}: ${spelt}`,
    );
  }
  taken.set(`${method} ${shape}`, subject);
}

function ignore(): void {
  // Reported when that action was inspected.
}

function inspectParts({ declared, refuse }: Subject): void {
  inspectShape(actionShape, declared, '', refuse);
  const { method, input, output, codes } = declared;
  if (input !== undefined) inspectInput(input, method, refuse);
  if (output !== undefined) inspectOutput(output, refuse);
  inspectCodes(codes, refuse);
}

function inspectInput(input: unknown, method: unknown, refuse: Subject['refuse']): void {
  if (!isRecord(input) || input.type !== 'object' || !isRecord(input.properties)) {
    const isSchema = isRecord(input) && typeof input.type === 'string';
    const what = isSchema ? `a schema of the type ${input.type}` : kindOf(input);
    refuse(`input must be a Type.Object({ ... }), not ${what}`);
    return;
  }
  for (const mistake of schemaMistakes(input, 'input')) refuse(mistake);
  if (sizeMistakes(input, 'input').length > 0) return;
  inspectUploads(input, method, refuse);
  if (method !== 'GET' && method !== 'DELETE') return;
  for (const [name, schema] of Object.entries(input.properties)) {
    if (!isOfQueryString(schema))
      refuse(`input.${name} cannot come from a query string, in which a ${method} has its input`);
  }
}

function inspectReferences({ declared, refuse }: Subject, collections: Declared): void {
  const { references, input } = declared;
  if (references === undefined) return;
  if (!isRecord(references)) {
    refuse(`references must be an object such as { into: 'tickets' }, not ${kindOf(references)}`);
    return;
  }
  const properties = isRecord(input) && isRecord(input.properties) ? input.properties : {};
  for (const [name, target] of Object.entries(references)) {
    const member = properties[name];
    if (!isRecord(member) || member.type !== 'string') refuse(`references.${name} is no text of the input`);
    if (typeof target !== 'string' || (target !== 'users' && !Object.hasOwn(collections, target)))
      refuse(
        `references.${name} must be the name of a collection, not ${JSON.stringify(target) ?? kindOf(target)}`,
      );
  }
}

/** Texts, numbers and booleans, lists of them, and objects of these. */
function isOfQueryString(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  if (schema.type === 'array') return isScalar(schema.items);
  if (isRecord(schema.properties)) return Object.values(schema.properties).every(isOfQueryString);
  return isScalar(schema);
}

const scalarTypes: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'null']);

function isScalar(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  const branches = [schema.anyOf, schema.oneOf].flat().filter((branch) => branch !== undefined);
  if (branches.length > 0) return branches.every(isScalar);
  return [schema.type].flat().every((type) => scalarTypes.has(type)) || 'enum' in schema || 'const' in schema;
}

function inspectOutput(output: unknown, refuse: Subject['refuse']): void {
  if (!isRecord(output)) {
    refuse(
      `output must be a TypeBox schema or one of output.text(), .bytes(), .stream() and .redirect(), not ${kindOf(output)}`,
    );
    return;
  }
  if (!isOwnOutput(output)) {
    for (const mistake of schemaMistakes(output, 'output')) refuse(mistake);
    return;
  }
  if (output.kind === 'redirect') {
    if (!redirectStatuses.has(output.status)) refuse('output.redirect takes 303, 307 or 308');
  } else if (!isMediaType(output.mediaType)) {
    refuse(
      `output.${output.kind} takes a media type such as text/csv, not ${JSON.stringify(output.mediaType)}`,
    );
  }
  const policy: unknown = output.securityPolicy;
  if (policy !== undefined && (typeof policy !== 'string' || !fieldValue.test(policy)))
    refuse(`output: securityPolicy must be a Content-Security-Policy, not ${JSON.stringify(policy)}`);
  const name: unknown = output.fileName;
  if (name !== undefined && !isFileName(name))
    refuse(`output: fileName must be the name of a file, not ${JSON.stringify(name)}`);
}

/** A media type with its parameters. */
export function isMediaType(value: unknown): value is string {
  return typeof value === 'string' && mediaType.test(value);
}

/** A name that is suggested to browsers. */
export function isFileName(value: unknown): value is string {
  return typeof value === 'string' && fileName.test(value);
}

/** A schema has no `kind`: TypeBox writes its own under another name. */
export function isOwnOutput(output: object): output is Output {
  return 'kind' in output && outputKinds.has(output.kind) && 'mediaType' in output;
}

function inspectCodes(codes: unknown, refuse: Subject['refuse']): void {
  if (codes === undefined) return;
  if (typeof codes !== 'object' || codes === null) {
    refuse(`codes must be a list of codes, or an object of codes and statuses, not ${kindOf(codes)}`);
    return;
  }
  for (const [code, status] of codesOf(codes)) {
    if (typeof code !== 'string' || !codeName.test(code)) {
      refuse(`codes: ${JSON.stringify(code)} is not a code of lower-case letters, digits and underscores`);
    } else if (status !== undefined && isRegistered(code) && problems[code].status !== status) {
      refuse(
        `codes.${code} has the status ${problems[code].status} in the registry, not ${JSON.stringify(status)}`,
      );
    } else if (status !== undefined && !isRegistered(code) && !refusalStatuses.has(status as number)) {
      refuse(
        `codes.${code} must be one of ${[...refusalStatuses].join(', ')}, not ${JSON.stringify(status)}`,
      );
    }
  }
}

function codesOf(codes: object): readonly (readonly [code: unknown, status: unknown])[] {
  return Array.isArray(codes) ? codes.map((code) => [code, undefined] as const) : Object.entries(codes);
}

function isRegistered(code: string): code is ProblemCode {
  return Object.hasOwn(problems, code);
}

const noFields: Fields = new Map<string, never>([]);

function inspectAccess(
  { declared, on, of, refuse }: Subject,
  declaration: unknown,
  collection: Collection | undefined,
  through: Through | undefined,
): void {
  if (declared.access === undefined) return;
  const rule = ruleOf(declared.access);
  if (on !== 'member' && needsDocument(rule)) {
    refuse("access needs a document ('owner', 'tenant', where), which only an action on a member has");
    return;
  }
  if (on === 'member' && collection === undefined) return;
  inspectRule(
    {
      ...{ name: of ?? '', collections: new Set(), refuse, warn: refuse },
      declaration: (declaration ?? {}) as CollectionDeclaration,
      fields: on === 'member' ? (collection?.fields ?? noFields) : noFields,
      ...(on === 'member' ? { through } : {}),
    },
    { name: 'access', creates: false },
    rule,
  );
}

/** A text that is no rule is the name of a role. */
function ruleOf(access: unknown): unknown {
  return typeof access === 'string' && access !== '' && !wordedRules.has(access) ? { role: access } : access;
}

function needsDocument(rule: unknown): boolean {
  if (!isRecord(rule)) return rule === 'owner' || rule === 'tenant';
  const parts = rule.anyOf ?? rule.allOf;
  return Array.isArray(parts) ? parts.some(needsDocument) : 'where' in rule;
}

function resolve(
  { name, declared, on }: Subject,
  pattern: string,
  collection: Collection | undefined,
  through: Through | undefined,
): DeclaredAction {
  const { access, codes, example = {} } = declared;
  const captures = capturesOf(pattern.split('/'));
  const setting =
    on === 'member' && collection !== undefined
      ? { table: collection.name, fields: collection.fields, tenantField: collection.tenantField, through }
      : { table: '', fields: noFields, tenantField: undefined };
  const standard: Rule = on === 'member' ? (collection?.access.update ?? 'principal') : 'principal';
  return {
    ...{ name, on, collection, pattern },
    captures: on === 'member' ? captures.slice(1) : captures,
    method: declared.method as ActionMethod,
    input: declared.input as TObject | undefined,
    output: declared.output as TSchema | Output | undefined,
    references: new Map(Object.entries((declared.references ?? {}) as Readonly<Record<string, string>>)),
    rule: access === undefined ? standard : resolveRule(ruleOf(access) as Rule, setting),
    codes:
      codes === undefined
        ? undefined
        : new Map(codesOf(codes as object) as readonly (readonly [string, number | undefined])[]),
    summary: declared.summary as string | undefined,
    description: declared.description as string | undefined,
    example: example as DeclaredAction['example'],
    handler: declared.handler as DeclaredAction['handler'],
  };
}
