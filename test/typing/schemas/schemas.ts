/** A project that names its schemas once: functions within a collection then know all the others. */
import { allow, collection, computed, defineConfig, type Static, Type } from 'comity';

const Ticket = Type.Object({
  title: Type.String(),
  status: Type.Enum(['open', 'solved']),
});
const Note = Type.Object({ text: Type.String(), ticketId: Type.String() });
const Account = Type.Object({
  organisationId: Type.Optional(Type.String()),
  level: Type.Integer({ default: 0 }),
});
const computedFields = { length: computed(Type.Integer(), ({ text }: Static<typeof Note>) => text.length) };

declare module 'comity' {
  interface Schemas {
    tickets: typeof Ticket;
    notes: { schema: typeof Note; computed: typeof computedFields };
    users: typeof Account;
  }
}

const tickets = collection({
  schema: Ticket,
  access: {
    read: allow<typeof Ticket>(({ fields }, ticket) => ticket.title.is(fields.organisationId)),
    // @ts-expect-error accounts have no field organizationId
    update: allow(({ fields }) => fields.organizationId === 'x'),
  },
  hooks: {
    async beforeWrite({ after, id, principal, resources, refuse }) {
      const level: number | undefined = principal.fields.level;
      const account = await resources.users.get(principal.id ?? '');
      const fields: readonly [string | undefined, number | undefined] = [account?.email, account?.level];
      await resources.users.list({
        filter: { level: { gt: level ?? fields.length } },
        sort: ['-organisationId'],
      });
      // @ts-expect-error accounts have no field organizationId
      await resources.users.list({ filter: { organizationId: 'x' } });
      const title: string = after.title;
      const notes = await resources.notes.list({ filter: { ticketId: id } });
      const first: Static<typeof Note> | undefined = notes[0];
      const length: number | undefined = notes[0]?.length;
      await resources.notes.list({ filter: { length: { gt: length ?? 0 } }, sort: ['-length'] });
      if (first === undefined) await resources.notes.create({ text: title, ticketId: id });
      // @ts-expect-error no collection has this name
      await resources.note.get(id);
      // @ts-expect-error a note has no member body
      await resources.notes.create({ body: 'x', ticketId: id });
      // @ts-expect-error no ticket is pending
      await resources.tickets.list({ filter: { status: 'pending' } });
      // @ts-expect-error no ticket is pending
      after.status = 'pending';
      return refuse({ code: 'never' });
    },
  },
});

export const notes = collection({
  schema: Note,
  computed: computedFields,
  references: { ticketId: { collection: 'tickets' } },
});

// @ts-expect-error the project names no such collection
collection({ schema: Note, references: { ticketId: { collection: 'ticket' } } });

export const configuration = defineConfig({
  collections: { tickets, notes },
  accounts: {
    fields: Account,
    references: { organisationId: { collection: 'tickets' } },
    readOnly: { level: { role: 'trainer' }, name: 'owner' },
    hidden: { email: 'owner' },
    indexes: [['organisationId', 'level'], 'createdAt'],
    hooks: {
      beforeWrite({ after, before }) {
        const level: number = after.level + (before?.level ?? 0);
        after.level = level;
        // @ts-expect-error accounts have no field organizationId
        after.organizationId = after.email;
      },
    },
    admin: { role: 'trainer', where: { where: { level: 1 } } },
  },
});

// @ts-expect-error accounts have no field levle
defineConfig({ collections: {}, accounts: { fields: Account, readOnly: { levle: 'owner' } } });
const toTickets = { collection: 'tickets' };
defineConfig({
  collections: {},
  // @ts-expect-error a reference holds a text
  accounts: { fields: Account, references: { level: toTickets } },
});

export const assignments = collection({
  schema: Note,
  references: { ticketId: { collection: 'users' } },
});
