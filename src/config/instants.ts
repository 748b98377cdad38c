/**
 * The instants in documents of a schema: every text whose schema has `format: 'date-time'`, at any depth, in arrays, alternatives and
 * definitions. A text that may also be of another kind, and one of given values (`const`, `enum`), is text.
 */
import type { FieldError } from '../http/problem.ts';
import type { Json } from '../http/syntax/json.ts';
import { formatJsonPointer } from '../http/syntax/json-pointer.ts';
import { isMembers, type Members, setMember } from '../model/json-value.ts';
import { instantKey, instantOfKey, instantWords, keptInstant } from '../model/timestamp.ts';
import { type CompiledSchema, eachNode, isNode, type SchemaNode } from './declared-schema.ts';
import { Applying, itemSchemas, memberSchemas } from './unknown-members.ts';

export type Instants = {
  /** Spells every instant as it is kept; the value itself if all are so already. Text that is no instant stays as it is. */
  readonly keep: (value: Json) => Json;
  /** Spells every instant in the shortest kept spelling, for comparisons of values. */
  readonly shorten: (value: Json) => Json;
  /** The pointer of the first instant that is not spelled as it is kept; undefined if there is none. */
  readonly findRespelt: (value: unknown) => string | undefined;
  /** Lists the texts that are no instants, at most `errorsMax`. */
  readonly findFaults: (value: unknown, errorsMax: number) => readonly FieldError[];
};

/** True if documents of the schema may have instants. */
export function holdsInstants(root: SchemaNode): boolean {
  let holds = false;
  eachNode(root, ({ format }) => {
    holds ||= format === 'date-time';
  });
  return holds;
}

/** @param compiled the check of the schema, which decides between alternatives @returns undefined if it has no instants */
export function compileInstants(root: SchemaNode, compiled: CompiledSchema): Instants | undefined {
  if (!holdsInstants(root)) return undefined;
  const applying = new Applying(compiled);
  const leads = new WeakMap<SchemaNode, boolean>();
  const walk = (value: Json, onText: OnText): Json => {
    try {
      return new Walk(applying, leads, onText).visit([root], value);
    } catch (error) {
      // The stack overflowed: the check of the schema refuses the value for its depth.
      if (!(error instanceof RangeError)) throw error;
      return value;
    } finally {
      compiled.forget();
    }
  };
  return {
    keep: (value) => walk(value, (text) => keptInstant(text) ?? text),
    shorten: (value) => walk(value, (text) => instantOfKey(instantKey(keptInstant(text) ?? text))),
    findRespelt: (value) => {
      let pointer: string | undefined;
      walk(value as Json, (text, path) => {
        if (pointer === undefined && (keptInstant(text) ?? text) !== text) pointer = formatJsonPointer(path);
        return text;
      });
      return pointer;
    },
    findFaults: (value, errorsMax) => {
      const errors: FieldError[] = [];
      walk(value as Json, (text, path) => {
        if (errors.length < errorsMax && keptInstant(text) === undefined)
          errors.push({ pointer: formatJsonPointer(path), message: `must be ${instantWords}` });
        return text;
      });
      return errors;
    },
  };
}

type OnText = (text: string, path: readonly (string | number)[]) => string;

class Walk {
  readonly #applying: Applying;
  /** For each schema, true if there may be instants below it. */
  readonly #leads: WeakMap<SchemaNode, boolean>;
  readonly #onText: OnText;
  readonly #path: (string | number)[] = [];

  constructor(applying: Applying, leads: WeakMap<SchemaNode, boolean>, onText: OnText) {
    this.#applying = applying;
    this.#leads = leads;
    this.#onText = onText;
  }

  /** @param schemas all schemas that apply to the value @returns the value with its texts replaced; itself if none was */
  visit(schemas: readonly unknown[], value: Json): Json {
    if (typeof value === 'string') {
      return schemas.some((schema) => this.#isInstant(schema)) ? this.#onText(value, this.#path) : value;
    }
    if (typeof value !== 'object' || value === null) return value;
    const leading = schemas.filter((schema) => this.#mayLead(schema));
    if (leading.length === 0) return value;
    const { nodes } = this.#applying.to(leading, value);
    return Array.isArray(value) ? this.#items(nodes, value) : this.#members(nodes, value);
  }

  #items(nodes: readonly SchemaNode[], value: readonly Json[]): Json {
    let copy: Json[] | undefined;
    for (const [index, item] of value.entries()) {
      const below = this.#below(
        nodes.flatMap((node) => itemSchemas(node, index)),
        item,
        index,
      );
      if (below === item) continue;
      copy ??= [...value];
      copy[index] = below;
    }
    return copy ?? (value as Json);
  }

  #members(nodes: readonly SchemaNode[], value: Json): Json {
    if (!isMembers(value)) return value;
    let copy: Members | undefined;
    for (const name of Object.keys(value)) {
      const member = value[name] ?? null;
      const below = this.#below(
        nodes.flatMap((node) => memberSchemas(node, name)),
        member,
        name,
      );
      if (below === member) continue;
      copy ??= { ...value };
      setMember(copy, name, below);
    }
    return copy ?? value;
  }

  #below(schemas: readonly unknown[], value: Json, at: string | number): Json {
    if (schemas.length === 0) return value;
    this.#path.push(at);
    const below = this.visit(schemas, value);
    this.#path.pop();
    return below;
  }

  #mayLead(schema: unknown): boolean {
    if (!isNode(schema)) return false;
    const known = this.#leads.get(schema);
    if (known !== undefined) return known;
    let leads = false;
    eachNode(schema, ({ format, $ref }) => {
      leads ||= format === 'date-time' || $ref !== undefined;
    });
    this.#leads.set(schema, leads);
    return leads;
  }

  /** @param within the schemas that lead here: a schema may refer to itself */
  #isInstant(schema: unknown, within: readonly unknown[] = []): boolean {
    if (!isNode(schema) || 'const' in schema || 'enum' in schema || within.includes(schema)) return false;
    if (schema.format === 'date-time') return mayBeText(schema);
    const inner = [...within, schema];
    if (
      typeof schema.$ref === 'string' &&
      this.#isInstant(this.#applying.compiled.referred(schema.$ref), inner)
    )
      return true;
    if (Array.isArray(schema.allOf) && schema.allOf.some((part) => this.#isInstant(part, inner))) return true;
    return [schema.anyOf, schema.oneOf].some((parts) => {
      const texts = Array.isArray(parts) ? parts.filter(mayBeText) : [];
      return texts.length > 0 && texts.every((part) => this.#isInstant(part, inner));
    });
  }
}

/** As far as the schema itself says. */
function mayBeText(schema: unknown): boolean {
  if (!isNode(schema)) return schema === true;
  if ('const' in schema) return typeof schema.const === 'string';
  if (Array.isArray(schema.enum)) return schema.enum.some((value) => typeof value === 'string');
  return schema.type === undefined || [schema.type].flat().includes('string');
}
