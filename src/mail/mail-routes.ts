/**
 * `/mails`: the mails that functions and accounts sent, and their state, for administrators. Ids are in the order of creation, so `sort=-id`
 * lists the newest first at the cost of one page. Nothing serves their contents, which may hold codes. POST to `/mails/{id}/resend` makes a
 * mail due at once, with its whole schedule; the response, 202, comes first.
 */
import { Type } from 'typebox';
import { type ActionLimits, actionResource, type Done } from '../kernel/action.ts';
import { type CollectionOperation, representationOf } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import type { KeptMail } from '../model/kept-mail.ts';
import { timeAfter } from '../resources/collection/row.ts';
import type { Served } from '../resources/collection/served.ts';
import { type ServedCollection, type Serving, serveCollection } from '../resources/collection/serving.ts';
import { type MemberStanding, onMember } from '../resources/collection/standing.ts';
import { tryCommit } from '../store/lines.ts';
import { Overtaken } from '../store/store.ts';
import { mailContentsTable, mailsCollection } from './mail-tables.ts';
import { mailChange } from './settle-mail.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

const listNote = 'In the order of creation; `sort=-id` returns the newest first, at the same cost.';

export function mailResources(serving: Serving): ServedCollection {
  const plain = serveCollection(serving, mailsCollection, {
    announced: false,
    operations,
    documentation: {
      names: { singular: 'Mail', plural: 'Mails', one: 'a mail', many: 'mails' },
      idPrefix: 'mail_',
      revise: { list: (standard) => ({ ...standard, description: listNote }) },
    },
  });
  const limits = { ...serving.contentLimits, validationErrorsMax: serving.validationErrorsMax };
  return { ...plain, resources: [...plain.resources, resendResource(plain.served, limits)] };
}

function resendResource(served: Served, limits: ActionLimits): Resource {
  return actionResource(
    {
      ...onMember(served, 'resend', 'update', 'Id of the mail.'),
      noun: 'the resending of a mail',
      id: 'resendMail',
      summary: 'Send a mail again',
      description:
        'The mail becomes pending and due immediately, for the recipients that have not accepted it, and its schedule of retries restarts. 409 if its content is no longer kept: it is deleted when a mail was sent.',
      input: { name: 'MailResend', schema: Type.Object({}), example: {}, optional: true },
      output: { schema: representationOf(served.collection) },
      answers: 'queued',
      codes: ['content_unavailable'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (_ask, _input, standing) => resend(served, standing),
    },
    limits,
  );
}

async function resend({ store, clock, path }: Served, { row, id }: MemberStanding): Promise<Done> {
  if (row === undefined) throw new Error('a resending requires the row of its mail');
  const current = JSON.parse(row.doc) as KeptMail;
  if (current.status === 'sent' || (await store.read(mailContentsTable, id)) === undefined) {
    const message = 'the content of this mail is no longer kept';
    return { refused: { code: 'content_unavailable', message } };
  }
  const now = new Date(timeAfter(clock, row.updatedAt)).toISOString();
  const mail: KeptMail = {
    ...current,
    ...{ status: 'pending', scheduledAttempts: 0, refused: [], dueAt: now, lastError: null, updatedAt: now },
  };
  const commit = await tryCommit(store, { changes: [mailChange(mail, row.rev)], events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: mail, queued: `${path}/${id}` };
}
