/**
 * The resource `/{id}/attempts` of a delivery or a received message: its attempts, oldest first. A cursor is the number
 * of the last attempt on the previous page; it needs nothing more, because attempts are only added.
 */
import type { Problem } from '../../http/problem.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import { type Item, json, named, pageSchema, pathParameter } from '../../kernel/documentation.ts';
import type { Operation, Proposal, Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { type MemberStanding, memberStanding, memberValidators } from '../../resources/collection/member.ts';
import type { Served } from '../../resources/collection/served-collection.ts';
import { whenKnown } from '../../store/store.ts';
import { type AttemptsAsked, attemptsPage } from '../../work/settlement.ts';

type Asked = Proposal & AttemptsAsked;

const cacheControl = 'private, no-cache';
const parametersMax = 16;
const wholeNumber = /^[1-9]\d{0,5}$/;

/** Attempts on a page if the request sets no limit: more than a schedule and some resends make. */
const limitDefault = 200;

export type AttemptsDocumentation = {
  /** Name of the schema of an attempt, such as `Attempt`; that of a page adds `s`. */
  readonly name: string;
  /** Description of the path's id, such as `Of the delivery.` */
  readonly of: string;
  readonly summary: string;
  readonly pageDescription: string;
  readonly schema: Item;
  readonly example: Item;
};

/**
 * @param table the log of attempts
 * @param limitMax greatest `limit` of a request, the same as for every list
 */
export function attemptsResource(
  served: Served,
  table: string,
  limitMax: number,
  described: AttemptsDocumentation,
): Resource {
  const { collection, store, serving } = served;
  const { pageBytesMax: bytesMax } = serving.settings;
  const { name, summary, pageDescription, schema, example } = described;
  const page = pageSchema(`${name}s`, pageDescription, named(name, schema));
  const limit = Math.min(limitDefault, limitMax);
  const beginning: Asked = { problem: null, afterNumber: 0, limit, bytesMax };
  const operation: Operation<MemberStanding, never, Asked> = {
    documentation: {
      id: `list${name}s`,
      summary,
      description: 'Oldest first.',
      parameters: attemptsParameters(limitMax),
      member: { collection, action: 'read' },
      gives: { representation: json(page, { items: [example], nextCursor: null }) },
      codes: ['query_parameter_invalid'],
    },
    permission: (principal) => permission(collection.access.read, 'read', principal),
    standing: (ask) => memberStanding(served, ask, 'read'),
    propose: (ask) => (ask.query === undefined ? beginning : readAsked(ask.query, beginning, limitMax)),
    // An attempt is logged in the unit that changes the member, so the member's revision validates the list.
    validators: (_ask, standing) => ({ ...memberValidators(standing), cacheControl }),
    represent: (_ask, standing, proposal = beginning) =>
      whenKnown(attemptsPage(store, table, standing.id, proposal), ({ docs, more }) => {
        const next = more ? `"${numberOf(docs.at(-1))}"` : 'null';
        return {
          content: `{"items":[${docs.join(',')}],"nextCursor":${next}}`,
          mediaType: 'application/json',
          validators: memberValidators(standing),
          cacheControl,
        };
      }),
  };
  return {
    pattern: `${served.path}/{id}/attempts`,
    documentation: {
      name: `${name}s`,
      tag: collection,
      parameters: [pathParameter('id', described.of)],
    },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}

function attemptsParameters(limitMax: number): readonly Item[] {
  const schema = { type: 'integer', minimum: 1, maximum: limitMax };
  return [
    {
      name: 'limit',
      in: 'query',
      description: 'Number of attempts on a page.',
      schema: { ...schema, default: Math.min(limitDefault, limitMax) },
    },
    {
      name: 'cursor',
      in: 'query',
      description: '`nextCursor` of the previous page.',
      schema: { type: 'string', minLength: 1 },
    },
  ];
}

/** Read from the document, not counted: retention may have removed the first attempts. */
function numberOf(doc = '{}'): number | undefined {
  return (JSON.parse(doc) as { readonly number?: number }).number;
}

/** @param beginning the defaults */
function readAsked(query: string, beginning: Asked, limitMax: number): Asked {
  let asked = beginning;
  const pairs = parseQueryString(query, parametersMax);
  if (pairs === undefined) return { ...beginning, problem: problem('malformed query string') };
  for (const [name, value] of pairs) {
    // Authentication has already read the credential.
    if (name === 'api_key') continue;
    const number = wholeNumber.test(value) ? Number(value) : 0;
    if (name === 'limit' || name === 'per_page') {
      if (number === 0 || number > limitMax) {
        return { ...asked, problem: problem(`${name} must be a whole number from 1 to ${limitMax}`) };
      }
      asked = { ...asked, limit: number };
    } else if (name === 'cursor') {
      if (number === 0) return { ...asked, problem: problem('cursor must be the nextCursor of a page') };
      asked = { ...asked, afterNumber: number };
    } else {
      return { ...asked, problem: problem('unknown query parameter; the parameters are limit and cursor') };
    }
  }
  return asked;
}

function problem(message: string): Problem {
  return { code: 'query_parameter_invalid', message };
}
