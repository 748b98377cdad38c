/** What the functions of an application are measured with: the same writes with and without them. */
import { type Acting, action, collection, defineConfig, type ResourcesOf, type Static, Type } from 'comity';

const Note = Type.Object({ text: Type.String(), count: Type.Integer() });
type All = ResourcesOf<{ plain: typeof Note }>;

export const config = defineConfig({
  collections: {
    plain: collection({ schema: Note }),
    /** A hook that does nothing. */
    hooked: collection({ schema: Note, hooks: { beforeWrite: () => undefined } }),
    watched: collection({ schema: Note }),
  },
  actions: {
    pair: action({
      method: 'POST',
      input: Note,
      async handler({ input, resources }: Acting<Static<typeof Note>, unknown, All, string, undefined>) {
        await resources.plain.create(input);
        await resources.plain.create(input);
      },
    }),
  },
  subscribers: { watch: { events: ['watched.created'], handler: () => undefined } },
  senders: { handled: { preset: 'standard', handler: () => undefined } },
});

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default config;
