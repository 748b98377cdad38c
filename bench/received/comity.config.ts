/**
 * The configuration that receiving is measured with: senders whose messages wait to be marked, one whose function does nothing, and two
 * whose functions never end.
 */
import { defineConfig } from 'comity';

export const config = defineConfig({
  collections: {},
  senders: {
    standard: { preset: 'standard' },
    timestamped: { preset: 'timestamped' },
    plain: { preset: 'plain' },
    handled: { preset: 'standard', handler: () => undefined },
    waiting: { preset: 'standard', handler: () => new Promise<void>(() => undefined) },
    looping: { preset: 'standard', handler: loop },
  },
});

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default config;

function loop(): void {
  for (;;);
}
