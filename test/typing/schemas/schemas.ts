/** A project that names its schemas once: functions within a collection then know all the others. */
import { collection, computed, defineConfig, type Static, Type } from 'comity';

const Ticket = Type.Object({
  title: Type.String(),
  status: Type.Enum(['open', 'solved']),
});
const Note = Type.Object({ text: Type.String(), ticketId: Type.String() });
const computedFields = { length: computed(Type.Integer(), ({ text }: Static<typeof Note>) => text.length) };

declare module 'comity' {
  interface Schemas {
    tickets: typeof Ticket;
    notes: { schema: typeof Note; computed: typeof computedFields };
  }
}

const tickets = collection({
  schema: Ticket,
  hooks: {
    async beforeWrite({ after, id, resources, refuse }) {
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

export const configuration = defineConfig({ collections: { tickets, notes } });
