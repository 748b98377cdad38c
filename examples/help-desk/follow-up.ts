/** What follows from changes, from the clock, and from mails. These functions run on threads of their own, each in one transaction. */
import { type EventHandling, type Handling, type JobRun, UnprocessableMessage } from 'comity';
import type { Comment, Desk } from './schemas.ts';

/** Tells the one who asked that the desk has the question, and when the desk has answered. */
export const tellContact = {
  events: ['tickets.created', 'comments.created'],
  description: 'Mails to the one who asked.',
  async handler({ event, resources, mail }: EventHandling<Readonly<Record<string, unknown>>, Desk>) {
    const comment = event.type === 'comments.created' ? (event.data.object as Comment) : undefined;
    if (comment !== undefined && comment.byAgent !== true) return;
    const ticketId = comment?.ticketId ?? String(event.data.object.id);
    const ticket = await resources.tickets.get(ticketId);
    // Deleted meanwhile: there is nobody to tell.
    if (ticket === undefined) return;
    const values = { title: ticket.title, ticket: ticketId, text: comment?.text ?? '' };
    const template = comment === undefined ? 'ticket-received' : 'ticket-answered';
    await mail.send({ to: ticket.contact, template, values });
  },
};

/** Opens a solved ticket again when the one who asked is not satisfied. Comments of one ticket are looked at in their order. */
export const reopen = {
  events: ['comments.created'],
  orderBy: (event: { readonly data: { readonly object: Readonly<Record<string, unknown>> } }) =>
    event.data.object.ticketId,
  async handler({ event, resources }: EventHandling<Comment, Desk>) {
    const { ticketId, byAgent } = event.data.object;
    if (byAgent === true) return;
    const ticket = await resources.tickets.get(ticketId);
    if (ticket?.status === 'solved') await resources.tickets.update(ticketId, { status: 'open' });
  },
};

const weekMs = 7 * 24 * 3_600_000;
/** One run closes so many; the next night goes on. */
const closedAtOnce = 200;

/** Closes what has been solved for a week. */
export const closeSolved = {
  cron: '0 3 * * *',
  timeZone: 'Europe/Berlin',
  description: 'Closes tickets that have been solved for a week.',
  async run({ resources, now }: JobRun<Desk>) {
    const before = new Date(now.getTime() - weekMs).toISOString();
    const filter = { status: 'solved', solvedAt: { lte: before } } as const;
    for (const { id } of await resources.tickets.list({ filter, limit: closedAtOnce }))
      await resources.tickets.update(id, { status: 'closed' });
  },
};

/** `{"type": "mail.received", "data": {"from", "subject", "text", "ticket"?}}` from the provider of mail. */
type Mail = {
  readonly from?: unknown;
  readonly subject?: unknown;
  readonly text?: unknown;
  readonly ticket?: unknown;
};

const titleCharacters = 200;

/** A mail becomes a ticket, or a comment on the ticket that it answers. */
export async function receiveMail({ message, resources }: Handling<Desk>): Promise<void> {
  if (message.type !== 'mail.received') return;
  const { from, subject, text, ticket } = ((message.json() as { data?: Mail }).data ?? {}) as Mail;
  if (typeof from !== 'string' || typeof text !== 'string')
    throw new UnprocessableMessage('a mail needs from and text');
  const known = typeof ticket === 'string' ? await resources.tickets.get(ticket) : undefined;
  if (known !== undefined && known.contact === from) {
    await resources.comments.create({ ticketId: known.id, text });
    return;
  }
  const title = String(subject ?? text).slice(0, titleCharacters) || 'A mail without a subject';
  const created = await resources.tickets.create({
    title,
    status: 'open',
    priority: 'normal',
    contact: from,
  });
  await resources.comments.create({ ticketId: created.id, text });
}
