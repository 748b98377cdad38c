/** What a help desk keeps, and the types of its functions. */
import { File, MiB, type ResourcesOf, type Static, Type } from 'comity';

export const Organisation = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 200 }),
});

/** What accounts have besides an address, a name and their rights. */
export const Account = Type.Object({
  organisationId: Type.Optional(Type.String()),
  /** Within the organisation: a lead sees its accounts, and changes its tickets. */
  role: Type.Optional(Type.Enum(['member', 'lead'], { default: 'member' })),
  phone: Type.Optional(Type.String({ minLength: 3, maxLength: 30 })),
});

export const Ticket = Type.Object({
  title: Type.String({ minLength: 1, maxLength: 200 }),
  body: Type.Optional(Type.String({ maxLength: 20_000 })),
  status: Type.Enum(['open', 'solved', 'closed'], { default: 'open' }),
  priority: Type.Enum(['normal', 'urgent'], { default: 'normal' }),
  /** Of the one who asked: where news go. */
  contact: Type.String({ format: 'email', maxLength: 254 }),
  /** Pictures of what is broken, logs, bills. */
  attachments: Type.Optional(Type.Array(File({ bytesMax: 20 * MiB }), { maxItems: 10 })),
  organisationId: Type.Optional(Type.String()),
  /** The agent who answers. */
  assigneeId: Type.Optional(Type.String()),
  /** Set by the desk. */
  dueAt: Type.Optional(Type.String({ format: 'date-time' })),
  solvedAt: Type.Optional(Type.String({ format: 'date-time' })),
  mergedInto: Type.Optional(Type.String()),
  /** Who asked, and who changed the ticket last. */
  askedBy: Type.Optional(Type.String()),
  changedBy: Type.Optional(Type.String()),
});

export const Comment = Type.Object({
  ticketId: Type.String(),
  text: Type.String({ minLength: 1, maxLength: 20_000 }),
  /** Written by the desk, not by the one who asked. */
  byAgent: Type.Optional(Type.Boolean()),
  authorId: Type.Optional(Type.String()),
});

export type Account = Static<typeof Account>;
export type Ticket = Static<typeof Ticket>;
export type Comment = Static<typeof Comment>;

/** The calls that every function of the desk gets as `resources`. */
export type Desk = ResourcesOf<{
  organisations: typeof Organisation;
  tickets: typeof Ticket;
  comments: typeof Comment;
  users: typeof Account;
}>;
