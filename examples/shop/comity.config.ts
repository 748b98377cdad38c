/**
 * A small shop: what `npm start` serves, and a configuration to learn from. Each collection below becomes
 * `/api/v1/{name}` with every method; what is not said here has a default that src/model/collection.ts explains.
 *
 * In a project of your own the first line reads: import { collection, defineConfig, Type } from 'comity';
 */
import { collection, defineConfig, Type } from 'comity';
import { countStock, draftReleaseNote, takeOffStock } from './handlers.ts';

const categories = collection({
  description: 'What products are sorted into. One that still has products cannot be deleted (409).',
  // Only the fields that clients write: the server adds id, createdAt and updatedAt.
  schema: Type.Object({
    name: Type.String({ minLength: 1 }),
  }),
  // Anyone may read; what is not named here needs a credential.
  access: { read: 'public' },
  examples: [{ name: 'Kitchen' }],
});

const products = collection({
  description: 'What the shop sells.',
  schema: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 200 }),
    price: Type.Number({ minimum: 0 }),
    categoryId: Type.String(),
    sku: Type.Optional(Type.String({ minLength: 1 })),
    tags: Type.Optional(Type.Array(Type.String())),
    stock: Type.Optional(Type.Integer()),
  }),
  access: { read: 'public' },
  // A category must exist to be named here, and then cannot be deleted; its 409 counts these as `productCount`.
  references: { categoryId: { collection: 'categories', countAs: 'productCount' } },
  // Lists that sort or filter by these cost the same however many products there are.
  indexes: ['categoryId', 'price'],
  // No two products share one (409) ...
  unique: ['sku'],
  // ... and it stays what it was when the product was made (400).
  unpatchable: ['sku'],
  examples: [
    {
      name: 'Enamelled kettle',
      price: 39.5,
      categoryId: '01JD7Z3Q8V5T9XK2M4N6P8R0SA',
      sku: 'KETTLE-15',
      tags: ['kitchen', 'enamel'],
      stock: 12,
    },
  ],
});

const articles = collection({
  description: 'The shop’s journal. A draft belongs to its author; once published, anyone may read it.',
  schema: Type.Object({
    title: Type.String({ minLength: 1 }),
    body: Type.Optional(Type.String()),
    published: Type.Optional(Type.Boolean()),
  }),
  access: {
    // Rules are data, so lists and queries leave out what the caller may not read.
    read: { anyOf: [{ where: { published: true } }, 'owner'] },
    create: 'principal',
    // Another's draft is 404 like any resource one may not read; another's published article is 403 to change.
    update: 'owner',
    delete: 'owner',
  },
  // PUT /articles/how-to-descale-a-kettle creates the article under that id.
  putCreates: true,
  // DELETE sets deletedAt and hides the article.
  softDelete: true,
  // A change must say which version it was made from: 428 without If-Match, 412 when someone was faster.
  requireMatch: true,
  examples: [{ title: 'How to descale a kettle', body: 'Fill it with vinegar and wait.', published: true }],
});

const notes = collection({
  description: 'Private notes: only their author can see that they exist.',
  schema: Type.Object({
    text: Type.String({ minLength: 1 }),
  }),
  access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
  // POST a text/plain body and it becomes `text`.
  formats: ['json', 'form', 'multipart', 'text'],
  textField: 'text',
  examples: [{ text: 'Order more vinegar.' }],
});

export default defineConfig({
  title: 'Shop',
  collections: { categories, products, articles, notes },
  // Writes announce themselves (`products.created` ...). What else happens is posted to /api/v1/events; a type that is
  // declared has a schema, which a posted event must fit (422), and a sample for those who receive it.
  eventTypes: {
    'stock.ran-out': {
      description: 'The last piece of a product is sold.',
      schema: Type.Object({ id: Type.String(), name: Type.String(), sku: Type.Optional(Type.String()) }),
      examples: [{ id: '01JD7Z3Q8V5T9XK2M4N6P8R0SB', name: 'Enamelled kettle', sku: 'KETTLE-15' }],
    },
  },
  // Who may post webhooks to /api/v1/webhooks/{name}, and what becomes of them. A preset says how such a sender signs; the
  // secret is in BILLING_WEBHOOK_SECRET and so on, or made at the first start and printed once.
  senders: {
    billing: {
      description: 'Tells of completed checkouts, which take from the stock.',
      preset: 'timestamped',
      handler: takeOffStock,
    },
    forge: {
      description: 'Where our software is made. A release becomes a draft of an article.',
      preset: 'plain',
      handler: draftReleaseNote,
    },
    partner: {
      description: 'Whose warehouse counts the stock.',
      preset: 'standard',
      handler: countStock,
      // One at a time and so in the order in which they came: the last count is the one that holds.
      inFlightMax: 1,
    },
  },
});
