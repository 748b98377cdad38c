/**
 * GET and HEAD of a collection (§4.2): a page of the resources that the principal may read.
 */
import { formatQueryString, parseQueryString } from '../../http/syntax/query-string.ts';
import type { Permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { Position } from '../../store/store.ts';
import type { Asked, QueryLimits } from '../query/asked.ts';
import { compileForm } from '../query/form.ts';
import type { Operation, Proposal, Standing } from '../resource.ts';
import { alteredCursor, parameterProblem } from './fault-problem.ts';
import { type ListTarget, representList, varyByPreference } from './list-answer.ts';
import type { Listing, Prepared } from './listing.ts';

export type ListProposal = Proposal & {
  readonly list:
    | { readonly prepared: Prepared; readonly position: Position; readonly target: ListTarget }
    | undefined;
};

export type ListOptions = {
  readonly path: string;
  readonly listing: Listing;
  readonly limits: QueryLimits;
  readonly cacheControl: string;
  readonly permission: (principal: Principal) => Permission;
};

const open: Standing = { exists: true, visible: true, permitted: true };

export function listOperation(options: ListOptions): Operation<Standing, never, ListProposal> {
  const { listing, cacheControl } = options;
  return {
    permission: options.permission,
    standing: () => open,
    propose: (ask) => proposeList(options, ask.query ?? '', ask.principal),
    validators: async (ask) => ({
      tag: await listing.tag(ask.principal),
      modifiedAt: null,
      cacheControl,
      fields: varyByPreference,
    }),
    represent: (ask, _standing, proposal) => {
      if (proposal?.list === undefined) throw new Error('a list without a query');
      return representList(ask, { listing, cacheControl, ...proposal.list });
    },
  };
}

/** Compiles a query component against the listing. */
export function proposeList(options: ListOptions, query: string, principal: Principal): ListProposal {
  const { listing, limits } = options;
  const prepared = listing.prepare(`GET ${query}`, principal, (target) => {
    const pairs = parseQueryString(query);
    if (pairs === undefined) {
      return { ok: false, faults: [{ kind: 'malformed', message: 'malformed query string' }] };
    }
    return compileForm(pairs, target, limits);
  });
  if ('faults' in prepared) return { problem: parameterProblem(prepared.faults), list: undefined };
  const position = listing.position(prepared);
  if (position === undefined) return { problem: alteredCursor, list: undefined };
  const target = { path: options.path, parameters: keptParameters(query, prepared.asked.source) };
  return { problem: null, list: { prepared, position, target } };
}

/** What a link to another page repeats: the query as it was written, unless it names a page or carries a credential. */
function keptParameters(query: string, source: Asked['source']): string {
  if (query === '' || source === undefined || source.length === 0) return '';
  const written = query.includes('page=') || query.includes('cursor=') || query.includes('api_key=');
  return `${written ? formatQueryString(source) : query}&`;
}
