/**
 * GET and HEAD of a collection (§4.2): a page of the resources that the principal may read.
 */
import { formatQueryString, parseQueryString } from '../../http/syntax/query-string.ts';
import type { Permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { Position } from '../../store/store.ts';
import type { QueryLimits } from '../query/asked.ts';
import { compileForm } from '../query/form.ts';
import type { Operation, Proposal, Standing } from '../resource.ts';
import { alteredCursor, parameterProblem } from './fault-problem.ts';
import { type ListTarget, representList } from './list-answer.ts';
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
    propose: (ask) => proposeList(options, ask.query ?? ''),
    validators: async (ask) => ({
      tag: await listing.tag(ask.principal),
      modifiedAt: null,
      cacheControl,
    }),
    represent: (ask, _standing, proposal) => {
      if (proposal?.list === undefined) throw new Error('a list without a query');
      return representList(ask, { listing, cacheControl, ...proposal.list });
    },
  };
}

/** Compiles a query component against the listing. */
export function proposeList(options: ListOptions, query: string): ListProposal {
  const { listing, limits } = options;
  const prepared = listing.prepare(`GET ${query}`, () => {
    const pairs = parseQueryString(query);
    if (pairs === undefined) {
      return { ok: false, faults: [{ kind: 'malformed', message: 'malformed query string' }] };
    }
    return compileForm(pairs, listing.listable, limits);
  });
  if ('faults' in prepared) return { problem: parameterProblem(prepared.faults), list: undefined };
  const position = listing.position(prepared);
  if (position === undefined) return { problem: alteredCursor, list: undefined };
  const { source } = prepared.asked;
  const parameters = source === undefined || source.length === 0 ? '' : `${formatQueryString(source)}&`;
  return { problem: null, list: { prepared, position, target: { path: options.path, parameters } } };
}
