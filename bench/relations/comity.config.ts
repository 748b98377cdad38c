/** What relations are measured with: tickets of customers, and the same notes twice, read by their own holder or by that of their ticket. */
import { allow, collection, defineConfig, Type } from 'comity';

const Customer = Type.Object({ name: Type.String(), address: Type.String() });
const Ticket = Type.Object({ title: Type.String(), customerId: Type.String(), holder: Type.String() });
const Note = Type.Object({ text: Type.String(), ticketId: Type.String(), holder: Type.String() });
const references = { ticketId: { collection: 'tickets' } } as const;

export const config = defineConfig({
  collections: {
    customers: collection({ schema: Customer }),
    tickets: collection({
      schema: Ticket,
      references: { customerId: { collection: 'customers' } },
      indexes: ['holder'],
    }),
    'own-notes': collection({
      schema: Note,
      references,
      indexes: ['holder'],
      access: { read: allow<typeof Note>((principal, note) => note.holder.is(principal.id)) },
    }),
    notes: collection({
      schema: Note,
      references,
      access: {
        read: allow<typeof Note, { ticketId: typeof Ticket }>((principal, note) =>
          note.ticketId.holder.is(principal.id),
        ),
      },
    }),
  },
});

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default config;
