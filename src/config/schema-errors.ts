/**
 * Words TypeBox's validation errors for clients (§2.2, §7): one sentence for each fault, with a JSON Pointer. Errors
 * inside alternatives become one sentence about the alternatives, unless only one alternative fits the type of the
 * value: then its own errors are reported.
 */
import type { FieldError } from '../http/problem.ts';
import { formatJsonPointer } from '../http/syntax/json-pointer.ts';
import { instantWords } from '../model/timestamp.ts';

export type Faults = { readonly missing: readonly FieldError[]; readonly invalid: readonly FieldError[] };

/** A longer pointer is cut to a parent: a member name may be as long as the content. */
const pointerCharactersMax = 512;

type Collected = {
  readonly missing: FieldError[];
  readonly invalid: FieldError[];
  readonly seen: Set<string>;
  /** References whose errors may still be listed. */
  left: number;
};

/** References in an invalid document whose errors are listed; the others are left out. */
const referencesListedMax = 500;

/** Separates missing from invalid; at most `errorsMax` of each, without repetitions. */
export function sortErrors(errors: readonly SchemaError[], errorsMax: number): Faults {
  const collected: Collected = { missing: [], invalid: [], seen: new Set(), left: referencesListedMax };
  collect(errors, collected);
  // A refused document has at least one error, even if none of TypeBox's can be worded.
  if (collected.seen.size === 0)
    collected.invalid.push({ pointer: '', message: 'does not match the schema' });
  return {
    missing: collected.missing.slice(0, errorsMax),
    invalid: collected.invalid.slice(0, errorsMax),
  };
}

function collect(errors: readonly SchemaError[], into: Collected): void {
  const unions = outermostUnions(errors);
  for (const error of errors) {
    if (unions.some((union) => isInside(error, union))) continue;
    const referred = referredErrors(error, into);
    if (referred !== undefined) collect(referred, into);
    else if (error.keyword === 'anyOf' || error.keyword === 'oneOf') collectUnion(error, errors, into);
    else if (error.keyword === 'required') collectMissing(error, into);
    else collectInvalid(error, into);
  }
}

/** The errors of a reference, as if its schema stood in its place; undefined for any other error. */
function referredErrors(error: SchemaError, into: Collected): readonly SchemaError[] | undefined {
  const { schemaPath, instancePath } = error;
  const list = 'message' in error.params ? error.params.message : undefined;
  if (typeof list !== 'function') return undefined;
  if (into.left <= 0) return [];
  into.left -= 1;
  return (list as ReferredErrors)().map((each) => ({
    ...each,
    schemaPath: `${schemaPath}${each.schemaPath.slice(1)}`,
    instancePath: `${instancePath}${each.instancePath}`,
  }));
}

/** With the errors of references about the value itself, which tell of what type it is expected to be. */
function withReferred(errors: readonly SchemaError[], at: string, into: Collected): readonly SchemaError[] {
  return errors.flatMap((error) => {
    const referred = error.instancePath === at ? referredErrors(error, into) : undefined;
    return referred === undefined ? [error] : withReferred(referred, at, into);
  });
}

function outermostUnions(errors: readonly SchemaError[]): readonly SchemaError[] {
  return errors.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf');
}

/** True if the error comes from an alternative of the union, for the same value. */
function isInside(error: SchemaError, union: SchemaError): boolean {
  if (!error.schemaPath.startsWith(`${union.schemaPath}/${union.keyword}/`)) return false;
  const { instancePath } = union;
  return error.instancePath === instancePath || error.instancePath.startsWith(`${instancePath}/`);
}

function collectUnion(union: SchemaError, errors: readonly SchemaError[], into: Collected): void {
  const { passingSchemas } = union.params as { readonly passingSchemas?: readonly unknown[] };
  if (passingSchemas !== undefined && passingSchemas.length > 0) {
    add(into, 'invalid', union.instancePath, 'must have only one of the allowed forms');
    return;
  }
  const branches = new Map<string, SchemaError[]>();
  const prefix = `${union.schemaPath}/${union.keyword}/`;
  for (const error of errors) {
    if (error === union || !isInside(error, union)) continue;
    const branch = error.schemaPath.slice(prefix.length).split('/', 1)[0] ?? '';
    const list = branches.get(branch);
    if (list === undefined) branches.set(branch, [error]);
    else list.push(error);
  }
  const all = [...branches.values()].map((branch) => withReferred(branch, union.instancePath, into));
  const fitting = all.filter(
    (branch) => !branch.some((error) => error.instancePath === union.instancePath && namesKind(error)),
  );
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) collect(only, into);
  else add(into, 'invalid', union.instancePath, unionMessage(all, union.instancePath));
}

/** True if the value is of another type than the alternative altogether. */
function namesKind(error: SchemaError): boolean {
  return error.keyword === 'type' || error.keyword === 'const' || error.keyword === 'enum';
}

function unionMessage(branches: readonly (readonly SchemaError[])[], instancePath: string): string {
  const phrases: string[] = [];
  for (const branch of branches) {
    const here = branch.filter((error) => error.instancePath === instancePath);
    const constant = here.find(({ keyword }) => keyword === 'const');
    const type = here.find(({ keyword }) => keyword === 'type');
    if (constant !== undefined && 'allowedValue' in constant.params) {
      phrases.push(JSON.stringify(constant.params.allowedValue));
    } else if (type !== undefined && 'type' in type.params) phrases.push(typePhrase(type.params.type));
    else return 'does not match any of the allowed forms';
  }
  const distinct = [...new Set(phrases)];
  return distinct.length === 0
    ? 'does not match any of the allowed forms'
    : `must be ${listPhrases(distinct)}`;
}

function listPhrases(phrases: readonly string[]): string {
  if (phrases.length === 1) return phrases[0] ?? '';
  return `${phrases.slice(0, -1).join(', ')} or ${phrases.at(-1)}`;
}

function collectMissing(error: SchemaError, into: Collected): void {
  const names = 'requiredProperties' in error.params ? error.params.requiredProperties : [];
  if (!Array.isArray(names)) return;
  for (const name of names) {
    add(into, 'missing', error.instancePath + formatJsonPointer([String(name)]), 'is required');
  }
}

function collectInvalid(error: SchemaError, into: Collected): void {
  if ('unevaluatedProperties' in error.params && Array.isArray(error.params.unevaluatedProperties)) {
    for (const name of error.params.unevaluatedProperties) {
      add(into, 'invalid', error.instancePath + formatJsonPointer([String(name)]), 'unknown property');
    }
    return;
  }
  const message = keywordMessage(error);
  if (message !== undefined) add(into, 'invalid', error.instancePath, message);
}

function add(into: Collected, kind: 'missing' | 'invalid', pointer: string, message: string): void {
  let at = pointer;
  while (at.length > pointerCharactersMax) at = at.slice(0, Math.max(0, at.lastIndexOf('/')));
  const said = at === pointer ? message : `${message} (in a member whose name is too long to show)`;
  const key = `${at}\n${said}`;
  if (into.seen.has(key)) return;
  into.seen.add(key);
  into[kind].push({ pointer: at, message: said });
}

const typePhrases: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  null: 'null',
};

const formatPhrases: Readonly<Record<string, string>> = {
  'date-time': instantWords,
  date: 'an ISO 8601 date',
  time: 'an ISO 8601 time',
  duration: 'an ISO 8601 duration',
  email: 'an email address',
  hostname: 'a host name',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  uri: 'a URI',
  url: 'a URL',
  uuid: 'a UUID',
};

const patternCharactersMax = 200;
const descriptionCharactersMax = 200;

type Params = { readonly [name: string]: unknown };

function patternMessage({ pattern, description }: Params): string {
  const message = `must match the pattern ${String(pattern).slice(0, patternCharactersMax)}`;
  if (typeof description !== 'string') return message;
  return `${message} (${description.slice(0, descriptionCharactersMax)})`;
}

/** Words the keyword that a value fails, without the value; undefined if another error describes it better. */
function keywordMessage(error: SchemaError): string | undefined {
  const params = error.params as Params;
  const { limit } = params;
  switch (error.keyword) {
    case 'type':
      return `must be ${typePhrase(params.type)}`;
    case 'boolean':
      return refusedBy(error.schemaPath);
    case 'additionalProperties':
      // TypeBox reports the property itself as well.
      return undefined;
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'exclusiveMinimum':
      return `must be greater than ${limit}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}`;
    case 'multipleOf':
      return `must be a multiple of ${params.multipleOf}`;
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must be at least ${limit} characters long`;
    case 'maxLength':
      return `must be at most ${counted(limit, 'character')} long`;
    case 'minItems':
      return `must have at least ${counted(limit, 'item')}`;
    case 'maxItems':
      return `must have at most ${counted(limit, 'item')}`;
    case 'minProperties':
      return `must have at least ${counted(limit, 'property', 'properties')}`;
    case 'maxProperties':
      return `must have at most ${counted(limit, 'property', 'properties')}`;
    case 'contains':
      return 'maxContains' in params
        ? `must contain at most ${counted(params.maxContains, 'matching item')}`
        : `must contain at least ${counted(params.minContains, 'matching item')}`;
    case 'unevaluatedItems':
      return 'has an unexpected item';
    case 'not':
      return 'must not have this form';
    case 'if':
      return 'does not have the form that applies to it';
    case 'pattern':
      return patternMessage(params);
    case 'format':
      return `must be ${formatPhrases[String(params.format)] ?? `a valid ${params.format}`}`;
    case 'const':
      return `must be ${JSON.stringify(params.allowedValue)}`;
    case 'enum':
      return `must be one of ${[params.allowedValues]
        .flat()
        .map((value) => JSON.stringify(value))
        .join(', ')}`;
    default:
      // `~refine` carries the schema author's own sentence; for the other, rare keywords TypeBox's wording suffices.
      return error.message;
  }
}

const ofMember = /\/(?:(?:properties|patternProperties)\/[^/]*|additionalProperties|unevaluatedProperties)$/;
const ofItem = /\/(?:items|prefixItems|additionalItems)(?:\/\d+)?$/;

/** Names what the schema `false` at this place refuses. */
function refusedBy(schemaPath: string): string {
  if (ofMember.test(schemaPath)) return 'unknown property';
  return ofItem.test(schemaPath) ? 'unexpected item' : 'is not allowed';
}

function typePhrase(type: unknown): string {
  const names = [type].flat().map(String);
  return names.map((name) => typePhrases[name] ?? name).join(' or ');
}

function counted(limit: unknown, one: string, many = `${one}s`): string {
  return `${limit} ${limit === 1 ? one : many}`;
}

/** The part of TypeBox's validation errors that is read here. */
export type SchemaError = {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
};

/** Lists the errors of a reference (declared-schema.ts), where they are wanted. It is the `message` in the `params` of its error. */
export type ReferredErrors = () => readonly SchemaError[];
