/**
 * POST to `/received/replay`: puts back the messages that a filter finds (that of a JSON QUERY, §4.9), in the order of receipt, at most
 * `receivedReplayMax` by one request. What is left is told of by `more`; the next request asks for what came after `lastId`, because a
 * message that was put back may be found by the same filter again. A dry run counts.
 *
 * Messages whose body is gone or whose sender is no longer declared are passed over and counted.
 */
import { Type } from 'typebox';
import { permission } from '../../../model/access.ts';
import type { Filter } from '../../../model/filter.ts';
import type { Principal } from '../../../model/principal.ts';
import { type ActionOptions, actionOperation } from '../../action/action.ts';
import { queryProblem } from '../../collection/fault-problem.ts';
import type { QueryTextLimits } from '../../collection/query-text.ts';
import type { Served } from '../../collection/served.ts';
import { compileJson } from '../../query/json.ts';
import type { Operation, Proposal, Resource } from '../../resource.ts';
import type { ReceivedResourcesOptions } from './options.ts';
import { putBackAll } from './put-back-all.ts';

type Limits = ActionOptions['limits'] & { readonly query: QueryTextLimits };

type Wanted = {
  readonly filter: unknown;
  readonly q?: string;
  readonly limit?: number;
  readonly dryRun?: boolean;
};

/** What the setting allows at most; below it the setting cuts, and `more` tells. */
const limitMax = 1_000_000;

type Content = Proposal & { readonly fields: Readonly<Record<string, unknown>> };

export function replayByQueryResource(
  options: ReceivedResourcesOptions,
  served: Served,
  limits: Limits,
): Resource {
  // Everything is a filter that has to be written down: {}.
  const schema = Type.Object({
    filter: Type.Object({}, { additionalProperties: true }),
    q: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limitMax })),
    dryRun: Type.Optional(Type.Boolean()),
  });
  const path = `${served.path}/replay`;
  const plain = actionOperation({
    path,
    schema,
    limits,
    permission: (principal: Principal) => permission(served.collection.access.update, 'update', principal),
    act: async (_ask, content) => {
      const { limit = Number.POSITIVE_INFINITY, dryRun = false, ...asked } = content as Wanted;
      const most = dryRun ? limit : Math.min(limit, options.receivedReplayMax);
      const filter = filterOf(served, limits.query, asked);
      return { content: await putBackAll(options, served, { filter, limit: most, dryRun }) };
    },
  });
  const operation: Operation = {
    ...(plain as Operation),
    propose: async (ask, standing, content) => {
      const proposal = (await plain.propose?.(ask, standing, content)) as Content;
      if (proposal.problem !== null) return proposal;
      const compiled = compile(served, limits.query, proposal.fields as Wanted);
      return compiled.ok ? proposal : { problem: queryProblem(compiled.faults) };
    },
  };
  return {
    pattern: path,
    operations: new Map([['POST', operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}

function compile(served: Served, limits: QueryTextLimits, { filter, q }: Wanted) {
  const query = q === undefined ? { filter } : { filter, q };
  return compileJson(query, served.listing.listable, limits);
}

function filterOf(served: Served, limits: QueryTextLimits, wanted: Wanted): Filter {
  const compiled = compile(served, limits, wanted);
  if (!compiled.ok) throw new Error('a filter that was sound is not');
  return compiled.asked.filter;
}
