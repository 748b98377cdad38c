/**
 * Source files under 200 lines that stay apart from their one importer, each with the reason. The list only shrinks: an entry that no longer
 * applies fails `scripts/checks/leaves.ts`.
 */

export const leafExceptions: ReadonlyMap<string, string> = new Map([
  [
    'src/all-resources.ts',
    'compose.ts lists the parts of the program and this the resources that it serves: two lists',
  ],
  ['src/app-assets.ts', 'the pages of the apps with their policy, which the list of resources only names'],
  [
    'src/cli/remote/function-commands.ts',
    'the commands of subscribers and jobs, as each other file of its folder has its nouns',
  ],
  ['src/cli/remote/single-commands.ts', 'the commands without a noun, as each other file of its folder'],
  [
    'src/config/settings/store.ts',
    'one chapter of the reference of settings, as each other file of its folder',
  ],
  [
    'src/config/settings/webhooks.ts',
    'one chapter of the reference of settings, as each other file of its folder',
  ],
  ['src/http/syntax/http-message.ts', 'a grammar of its own standard, pure and below the kernel'],
  ['src/logic/actions/action-routes.ts', 'the routes of a feature, which stand in its folder'],
  ['src/openapi/guide-pages.ts', 'the pages of the guides, which the list of resources only names'],
  ['src/resources/routes.ts', 'the routes of a feature, which stand in its folder'],
  ['src/observe/developer-log.ts', 'reads every kind of observation, which the command does not know'],
  ['src/tunnel/tunnel.ts', 'composes a feature in its folder, so that compose.ts names one part'],
  [
    'src/webhooks/sending/fan-out/directory.ts',
    'the rule by which memory follows the store, apart from the list of a sender’s parts',
  ],
]);
