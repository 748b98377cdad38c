/**
 * The sentence for each JSON Schema keyword that a value can fail. Limits come from the collection's schema;
 * nothing of the client's value is repeated.
 */
import type { SchemaError } from './schema-error.ts';

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
  'date-time': 'an ISO 8601 date and time',
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

type Params = { readonly [name: string]: unknown };

/** The sentence after the name of the field; undefined for an error that another one says better. */
export function keywordMessage(error: SchemaError): string | undefined {
  const params = error.params as Params;
  const { limit } = params;
  switch (error.keyword) {
    case 'type':
      return `must be ${typePhrase(params.type)}`;
    case 'boolean':
      return 'unknown property';
    case 'additionalProperties':
      // An error at the property itself stands beside it.
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
    case 'uniqueItems':
      return 'must not hold an item twice';
    case 'pattern':
      return `must match the pattern ${params.pattern}`;
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
      // `~refine` carries the sentence of whoever wrote the schema; the rest is rare and TypeBox's wording does.
      return error.message;
  }
}

/** `a string`, `a number or null`. */
export function typePhrase(type: unknown): string {
  const names = [type].flat().map(String);
  return names.map((name) => typePhrases[name] ?? name).join(' or ');
}

function counted(limit: unknown, one: string, many = `${one}s`): string {
  return `${limit} ${limit === 1 ? one : many}`;
}
