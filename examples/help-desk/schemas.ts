/** What a help desk keeps, and the types of its functions. */
import { type ResourcesOf, type Static, Type } from 'comity';

export const Organisation = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 200 }),
});

export const Ticket = Type.Object({
  title: Type.String({ minLength: 1, maxLength: 200 }),
  status: Type.Enum(['open', 'solved', 'closed'], { default: 'open' }),
  priority: Type.Enum(['normal', 'urgent'], { default: 'normal' }),
  /** Of the one who asked: where news go. */
  contact: Type.String({ format: 'email', maxLength: 254 }),
  organisationId: Type.Optional(Type.String()),
  /** Set by the desk. */
  dueAt: Type.Optional(Type.String({ format: 'date-time' })),
  solvedAt: Type.Optional(Type.String({ format: 'date-time' })),
  mergedInto: Type.Optional(Type.String()),
});

export const Comment = Type.Object({
  ticketId: Type.String(),
  text: Type.String({ minLength: 1, maxLength: 20_000 }),
  /** Written by the desk, not by the one who asked. */
  byAgent: Type.Optional(Type.Boolean()),
  organisationId: Type.Optional(Type.String()),
});

export type Ticket = Static<typeof Ticket>;
export type Comment = Static<typeof Comment>;

/** The calls that every function of the desk gets as `resources`. */
export type Desk = ResourcesOf<{
  organisations: typeof Organisation;
  tickets: typeof Ticket;
  comments: typeof Comment;
}>;
