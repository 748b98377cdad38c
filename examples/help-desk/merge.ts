/** POST /tickets/{id}/merge: moves the comments of a ticket to another one of the same organisation, and closes it. */
import { type Acting, action, type Static, Type } from 'comity';
import type { Desk, Ticket } from './schemas.ts';

const Merge = Type.Object({ into: Type.String({ minLength: 1 }) });

/** Beyond it an agent must tidy up first: the move is one transaction. */
const commentsMax = 500;

type Merging = Acting<
  Static<typeof Merge>,
  Ticket,
  Desk,
  'same_ticket' | 'ticket_missing' | 'ticket_closed' | 'another_organisation' | 'too_many_comments'
>;

export const merge = action({
  on: 'member',
  method: 'POST',
  summary: 'Merge a ticket into another one',
  access: 'agent',
  input: Merge,
  output: Type.Object({ moved: Type.Integer() }),
  codes: {
    same_ticket: 422,
    ticket_missing: 422,
    ticket_closed: 409,
    another_organisation: 422,
    too_many_comments: 409,
  },
  example: { input: { into: '01JD7Z3Q8V5T9XK2M4N6P8R0SA' }, output: { moved: 2 } },
  async handler({ id, document, input, resources, refuse }: Merging) {
    const pointer = '/into';
    if (input.into === id)
      return refuse({ code: 'same_ticket', message: 'a ticket cannot be merged into itself', pointer });
    if (document.status === 'closed')
      return refuse({ code: 'ticket_closed', message: 'the ticket is closed already' });
    const into = await resources.tickets.get(input.into);
    if (into === undefined)
      return refuse({ code: 'ticket_missing', message: 'there is no such ticket', pointer });
    if (into.organisationId !== document.organisationId) {
      const message = 'the tickets belong to different organisations';
      return refuse({ code: 'another_organisation', message, pointer });
    }
    let moved = 0;
    for await (const comment of resources.comments.all({ filter: { ticketId: id } })) {
      if (moved === commentsMax)
        return refuse({
          code: 'too_many_comments',
          message: `the ticket has more than ${commentsMax} comments`,
        });
      await resources.comments.update(comment.id, { ticketId: input.into });
      moved += 1;
    }
    await resources.tickets.update(id, { status: 'closed', mergedInto: input.into });
    return { moved };
  },
});
