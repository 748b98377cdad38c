/** What the compiler knows of actions and computed fields: each planted mistake is one that it finds, or `tsc` fails here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Acting,
  action,
  collection,
  computed,
  defineConfig,
  output,
  type Static,
  Type,
  type Upload,
  upload,
} from 'comity';

const Ticket = Type.Object({ title: Type.String(), votes: Type.Integer() });
const Input = Type.Object({ into: Type.String() });
const Photo = Type.Object({
  photo: upload({ bytesMax: 10 }),
  more: Type.Optional(Type.Array(upload({ bytesMax: 1 }))),
});

const tickets = collection({
  schema: Ticket,
  computed: { slug: computed(Type.String(), ({ title }: Static<typeof Ticket>) => title.toLowerCase()) },
  indexes: ['slug'],
  // @ts-expect-error no field is named so
  unique: ['slugs'],
  actions: {
    merge: action({
      on: 'member',
      method: 'POST',
      path: '/merge/{how}',
      input: Input,
      output: Type.Object({ moved: Type.Integer() }),
      codes: { ticket_closed: 409 },
      handler({ id, input, captures, refuse }) {
        const texts: readonly string[] = [id, input.into, captures.how];
        // @ts-expect-error the input has no such member
        void input.onto;
        // @ts-expect-error the path has no such capture
        void captures.where;
        // @ts-expect-error the code is not among the codes
        if (texts.length === 0) return refuse({ code: 'ticket_open' });
        return { moved: texts.length };
      },
    }),
    wrong: action({
      on: 'member',
      method: 'POST',
      output: Type.Object({ moved: Type.Integer() }),
      // @ts-expect-error the output is a number
      handler: () => ({ moved: 'three' }),
    }),
    typed: action({
      on: 'member',
      method: 'POST',
      input: Input,
      handler({ document, input }: Acting<Static<typeof Input>, Static<typeof Ticket>>) {
        const title: string = document.title;
        // @ts-expect-error the document has no such member
        void document.titel;
        return void [title, input.into];
      },
    }),
    photo: action({
      on: 'member',
      method: 'PUT',
      input: Photo,
      handler({ input }) {
        const { name, bytes }: Upload = input.photo;
        const more: readonly Upload[] = input.more ?? [];
        // @ts-expect-error a file is no text
        const text: string = input.photo;
        return void [name, bytes, more, text];
      },
    }),
    // @ts-expect-error an action of a collection says what it is on
    nowhere: action({ method: 'POST', handler: () => undefined }),
    // @ts-expect-error a number is no text
    text: action({ on: 'member', method: 'GET', output: output.text(), handler: () => 17 }),
  },
});

const configuration = defineConfig({
  collections: { tickets },
  actions: {
    ping: action({
      method: 'GET',
      output: output.text(),
      handler({ id, document }) {
        const nothing: undefined = id ?? document;
        return `${nothing}`;
      },
    }),
    // @ts-expect-error a free action is on nothing
    member: action({ on: 'member', method: 'GET', handler: () => undefined }),
  },
});

test('the compiler finds the planted mistakes', () => {
  assert.deepEqual(Object.keys(configuration.actions ?? {}), ['ping', 'member']);
});
