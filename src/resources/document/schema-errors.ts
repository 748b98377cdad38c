/**
 * What TypeBox says of an invalid document, in sentences for the client (§2.2, §7): one for each fault, found by a
 * JSON Pointer. Errors inside alternatives are folded into one sentence about the alternatives, unless
 * only one alternative fits the type of the value: then its own errors say more.
 */
import type { FieldError } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import { keywordMessage, typePhrase } from './keyword-message.ts';
import type { SchemaError } from './schema-error.ts';

/** Faults of a document; both empty when it is sound. */
export type Faults = { readonly missing: readonly FieldError[]; readonly invalid: readonly FieldError[] };

/** Longer pointers end at a member that holds the fault: a name may be as long as the content. */
const pointerCharactersMax = 512;

type Collected = {
  readonly missing: FieldError[];
  readonly invalid: FieldError[];
  readonly seen: Set<string>;
};

/** Sorts missing from invalid; at most `errorsMax` of each, each said once. */
export function sortErrors(errors: readonly SchemaError[], errorsMax: number): Faults {
  const collected: Collected = { missing: [], invalid: [], seen: new Set() };
  collect(errors, collected);
  // Never sound: a document that is refused has at least one error, even where none can be worded.
  if (collected.seen.size === 0) collected.invalid.push({ pointer: '', message: 'does not fit the schema' });
  return {
    missing: collected.missing.slice(0, errorsMax),
    invalid: collected.invalid.slice(0, errorsMax),
  };
}

function collect(errors: readonly SchemaError[], into: Collected): void {
  const unions = outermostUnions(errors);
  for (const error of errors) {
    if (unions.some((union) => isInside(error, union))) continue;
    if (error.keyword === 'anyOf' || error.keyword === 'oneOf') collectUnion(error, errors, into);
    else if (error.keyword === 'required') collectMissing(error, into);
    else collectInvalid(error, into);
  }
}

function outermostUnions(errors: readonly SchemaError[]): readonly SchemaError[] {
  return errors.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf');
}

/** Whether the error comes from an alternative of the union, and from the same value. */
function isInside(error: SchemaError, union: SchemaError): boolean {
  if (!error.schemaPath.startsWith(`${union.schemaPath}/${union.keyword}/`)) return false;
  const { instancePath } = union;
  return error.instancePath === instancePath || error.instancePath.startsWith(`${instancePath}/`);
}

function collectUnion(union: SchemaError, errors: readonly SchemaError[], into: Collected): void {
  const branches = new Map<string, SchemaError[]>();
  const prefix = `${union.schemaPath}/${union.keyword}/`;
  for (const error of errors) {
    if (error === union || !isInside(error, union)) continue;
    const branch = error.schemaPath.slice(prefix.length).split('/', 1)[0] ?? '';
    const list = branches.get(branch);
    if (list === undefined) branches.set(branch, [error]);
    else list.push(error);
  }
  const fitting = [...branches.values()].filter(
    (branch) => !branch.some((error) => error.instancePath === union.instancePath && namesKind(error)),
  );
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) collect(only, into);
  else add(into, 'invalid', union.instancePath, unionMessage([...branches.values()], union.instancePath));
}

/** Errors that say that the value is another thing altogether than this alternative. */
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
    else return 'fits none of the allowed forms';
  }
  const distinct = [...new Set(phrases)];
  return distinct.length === 0 ? 'fits none of the allowed forms' : `must be ${listPhrases(distinct)}`;
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
  const said = at === pointer ? message : `${message} (at a member with a long name)`;
  const key = `${at}\n${said}`;
  if (into.seen.has(key)) return;
  into.seen.add(key);
  into[kind].push({ pointer: at, message: said });
}
