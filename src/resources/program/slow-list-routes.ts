/** `/meta/slow-lists` (§4.21.7): the slowest lists that the process which answers has read lately, for administrators. */
import { type ActionLimits, actionResource } from '../../kernel/action.ts';
import { named, pageSchema } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { SlowList, SlowLists } from '../collection/slow-lists.ts';
import { serviceTag } from './document.ts';

export type SlowListRoutesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly limits: ActionLimits;
  readonly slowLists: Pick<SlowLists, 'list'>;
};

const count = { type: 'integer', minimum: 0 };
const time = { type: 'string', format: 'date-time' };

const schema = named('SlowList', {
  description: 'Reads of one list with one shape of filter and order.',
  type: 'object',
  properties: {
    list: { type: 'string', description: 'Name of the collection, or of another list.' },
    filter: { type: 'string', description: 'Fields and operators without values; empty: none.' },
    sort: { type: 'string', description: 'The order, or the fields that make groups.' },
    plan: { type: 'string', description: 'The token of `Comity-Plan`, such as `scan`.' },
    words: { type: 'string', description: 'The sentence of `Comity-Plan`, of the latest read.' },
    count: { ...count, description: 'Slow reads.' },
    failures: { ...count, description: 'Those of them that failed, for instance by a timeout.' },
    p50Ms: { type: 'number', description: 'About the median of the slow reads.' },
    maxMs: { type: 'number' },
    firstAt: time,
    lastAt: time,
  },
  required: [
    ...['list', 'filter', 'sort', 'plan', 'words', 'count', 'failures', 'p50Ms', 'maxMs'],
    ...['firstAt', 'lastAt'],
  ],
});

const example: SlowList = {
  list: 'products',
  filter: '(name eq and price gte)',
  sort: '-createdAt,-id',
  plan: 'scan',
  words: 'Looks at every document until the page is full: no index serves this filter and order.',
  count: 12,
  failures: 0,
  p50Ms: 45.3,
  maxMs: 120.4,
  firstAt: '2026-08-01T09:00:00.000Z',
  lastAt: '2026-08-01T09:30:00.000Z',
};

export function slowListResource({ base, limits, slowLists }: SlowListRoutesOptions): Resource {
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/slow-lists`, tag: serviceTag },
      ...{ name: 'SlowLists', noun: 'the slow lists' },
      id: 'listSlowLists',
      summary: 'List the slowest lists of late',
      description:
        'Administrators only. The process that answers lists what it read in the last hour and what took `COMITY_SLOW_LIST_MS` or more, the slowest first, all on one page. Values of filters are not kept.',
      output: {
        schema: pageSchema('SlowLists', 'The slow lists.', schema),
        example: { items: [example], nextCursor: null },
      },
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: () => ({ content: { items: slowLists.list(), nextCursor: null } }),
    },
    limits,
  );
}
