/** A project that names its schemas once: functions within a collection then know all the others. */
import { collection, defineConfig, type Static, Type } from 'comity';

const Ticket = Type.Object({
  title: Type.String(),
  status: Type.Enum(['open', 'solved']),
});
const Note = Type.Object({ text: Type.String(), ticketId: Type.String() });

declare module 'comity' {
  interface Schemas {
    tickets: typeof Ticket;
    notes: typeof Note;
  }
}

const tickets = collection({
  schema: Ticket,
  hooks: {
    async beforeWrite({ after, id, resources, refuse }) {
      const title: string = after.title;
      const notes = await resources.notes.list({ filter: { ticketId: id } });
      const first: Static<typeof Note> | undefined = notes[0];
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

export const configuration = defineConfig({ collections: { tickets, notes: collection({ schema: Note }) } });
