/**
 * PATCH {collection} (§4.19.8): one merge patch for every document that a filter finds, in one unit. The filter finds what the caller may read;
 * what it may not change is counted and left. A document that changes between the search and the commit is searched for again: the unit
 * expects each at the revision at which the filter found it.
 */
import type { Problem } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Ask, Operation, Proposal, Result, Standing } from '../../kernel/resource.ts';
import { workRules } from '../../memory/work-rules.ts';
import { permission } from '../../model/access.ts';
import { isMembers, type Members } from '../../model/json-value.ts';
import { Overtaken, type Page, type Position } from '../../store/store.ts';
import { queryProblem } from '../query/query-faults.ts';
import { type Alone, commitTogether, createQueue, type ItemWrite, madeReport } from './bulk-writes.ts';
import { tooLongTogether } from './commit.ts';
import type { Prepared } from './listing.ts';
import { memberStanding } from './member.ts';
import { readQueryText } from './query.ts';
import { openStanding, type Served } from './served-collection.ts';
import { proposeFields, understandBody } from './write-operations.ts';

type Patching = {
  readonly prepared: Prepared;
  readonly patch: Members;
  readonly dryRun: boolean;
};

type ManyProposal = Proposal & { readonly patching?: Patching };

export function updateManyOperation(served: Served): Operation<Standing, unknown, ManyProposal> {
  const { collection, listing, serving } = served;
  const alone = createQueue();
  return {
    permission: (principal) => permission(collection.access.update, 'update', principal),
    contentTypes: ['application/json'],
    makes: () => serving.settings.bulkItemsMax * workRules.bulkItem.octets,
    idempotent: true,
    asynchronous: true,
    reports: true,
    matchRequired: collection.requireMatch,
    understand: (_ask, bytes, mediaType) => understandBody(served, bytes, mediaType),
    standing: () => openStanding,
    propose: (ask, _standing, content) => readPatching(served, ask, content),
    validators: async (ask) => ({ tag: await listing.tag(ask.principal), modifiedAt: null }),
    act: (ask, _standing, proposal) => {
      if (proposal?.patching === undefined) throw new Error('an update of many requires its patch');
      return updateMany(served, ask, proposal.patching, alone);
    },
  };
}

const memberNames: ReadonlySet<string> = new Set(['filter', 'q', 'patch', 'dryRun']);

function readPatching({ listing }: Served, ask: Ask, content: unknown): ManyProposal {
  const refuse = (code: 'field_missing' | 'validation_failed', pointer: string, message: string) => ({
    problem: { code, errors: [{ pointer, message }] },
  });
  if (!isMembers(content)) return refuse('validation_failed', '', 'must be an object with filter and patch');
  const unknown = Object.keys(content).find((name) => !memberNames.has(name));
  if (unknown !== undefined)
    return refuse('validation_failed', formatJsonPointer([unknown]), 'unknown property');
  const { filter, q, patch, dryRun = false } = content;
  // Without a filter every document would be meant, which a client that forgets it does not mean.
  if (filter === undefined) return refuse('field_missing', '/filter', 'is required; {} finds all');
  if (patch === undefined) return refuse('field_missing', '/patch', 'is required');
  if (!isMembers(patch)) return refuse('validation_failed', '/patch', 'must be a merge patch, an object');
  if (typeof dryRun !== 'boolean') return refuse('validation_failed', '/dryRun', 'must be true or false');
  const query = { filter, ...(q === undefined ? {} : { q }), limit: listing.limits.listLimitMax };
  const { mediaType, text, compile } = readQueryText('application/json', JSON.stringify(query));
  const prepared = listing.prepare(`${mediaType} ${text}`, ask, (target) =>
    compile(text, target, listing.limits),
  );
  if ('faults' in prepared) return { problem: queryProblem(prepared.faults) };
  return { problem: null, patching: { prepared, patch, dryRun } };
}

/** Numbers of documents. */
type Counts = { changed: number; unchanged: number; refused: number };

async function updateMany(
  served: Served,
  ask: Ask,
  { prepared, patch, dryRun }: Patching,
  alone: Alone,
): Promise<Result> {
  const found = await findAll(served, ask, prepared);
  if ('refused' in found) return found;
  const counts: Counts = { changed: 0, unchanged: 0, refused: 0 };
  const writes: ItemWrite[] = [];
  for (const { id, rev } of found.rows) {
    await served.turns.next();
    const { exists, permitted, row, restsOn } = await memberStanding(
      served,
      { ...ask, captures: [id] },
      'update',
    );
    if (!exists || row === undefined || row.rev !== rev)
      return new Overtaken({ table: served.collection.name, id });
    if (!permitted) {
      counts.refused += 1;
      continue;
    }
    const target = { change: 'patch', id, current: row.doc, owner: row.owner } as const;
    const content = { format: 'merge-patch', value: patch };
    const { problem, fields, unchanged } = await proposeFields(served, ask, target, content);
    if (problem !== null) return { refused: ofDocument(id, problem) };
    if (unchanged === true) {
      counts.unchanged += 1;
      continue;
    }
    const write = { action: 'update', id, fields, index: 0, given: {}, before: row, row } as const;
    const settled = dryRun ? { fields } : await served.files?.settle(served, ask, write);
    if (settled !== undefined && 'refused' in settled) return { refused: ofDocument(id, settled.refused) };
    writes.push({ ...write, fields: settled?.fields ?? fields, isImport: false, restsOn });
  }
  counts.changed = writes.length;
  if (dryRun) return commitTogether(served, ask, [], { ...reporting(counts), alone });
  const placed: Served = { ...served, placeOf: () => '/patch' };
  return commitTogether(placed, ask, writes, { ...reporting(counts), alone });
}

/** The documents that the filter finds, up to the bound, at the revisions at which it does. */
async function findAll(
  served: Served,
  { principal, party }: Ask,
  prepared: Prepared,
): Promise<
  { readonly rows: readonly { readonly id: string; readonly rev: number }[] } | { readonly refused: Problem }
> {
  const { bulkItemsMax } = served.serving.settings;
  const charactersMax = served.store.unitCharactersMax;
  const rows: { id: string; rev: number }[] = [];
  let characters = 0;
  for (let position: Position = { from: 'start' }; ; ) {
    const page: Page = await served.listing.rows(prepared, principal, position, party);
    for (const [at, doc] of page.docs.entries()) {
      characters += doc.length;
      rows.push({ id: String((JSON.parse(doc) as Members).id), rev: page.heads?.[at]?.rev ?? 0 });
    }
    if (rows.length > bulkItemsMax) {
      const message = `the filter finds more than ${bulkItemsMax} documents, which one request changes (COMITY_BULK_ITEMS_MAX): filter more, or exclude those that have the values`;
      return { refused: { code: 'query_unprocessable', message } };
    }
    if (characters > charactersMax) return { refused: tooLongTogether('to change', charactersMax) };
    if (!page.more || page.last === null) return { rows };
    position = { from: 'after', key: page.last };
    await served.turns.next();
  }
}

function reporting(counts: Counts) {
  return {
    refused: ({ id }: ItemWrite, problem: Problem) => ofDocument(id, problem),
    onUnchanged: () => {
      counts.changed -= 1;
      counts.unchanged += 1;
    },
    made: () => madeReport(JSON.stringify(counts)),
  };
}

/** The problem of one document as one of the patch. */
function ofDocument(id: string, problem: Problem): Problem {
  const { errors = [], context } = problem;
  return {
    ...problem,
    errors: errors.map(({ pointer, message }) => ({ pointer: `/patch${pointer}`, message })),
    context: { ...context, document: id },
  };
}
