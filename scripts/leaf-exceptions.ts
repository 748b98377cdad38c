/**
 * Source files under 200 lines that stay apart from their one importer, each with the reason. The list only shrinks: an entry that no longer
 * applies fails `scripts/checks/leaves.ts`.
 */

export const leafExceptions: ReadonlyMap<string, string> = new Map([
  ['src/app-assets.ts', 'the pages of the apps with their policy, which the list of resources only names'],
  [
    'src/config/settings/files.ts',
    'one chapter of the reference of settings, as each other file of its folder',
  ],
  [
    'src/config/settings/store.ts',
    'one chapter of the reference of settings, as each other file of its folder',
  ],
  [
    'src/config/settings/webhooks.ts',
    'one chapter of the reference of settings, as each other file of its folder',
  ],
  ['src/files/check-files.ts', 'what the check compares, apart from the command that prints it'],
  ['src/files/file-form.ts', 'how a form arrives, beside how one file does'],
  ['src/files/file-links.ts', 'a resource of its own, with its token'],
  ['src/files/files-stage.ts', 'the stage of a commit, apart from the list of the parts of the feature'],
  ['src/files/text-type.ts', 'what text is, by a standard of its own, beside what binary content is'],
  [
    'src/files/s3/bucket-octets.ts',
    'the octets that a bucket gives, as s3-uploads.ts has those that it gets; the place lists both',
  ],
  ['src/openapi/guide-pages.ts', 'the pages of the guides, which the list of resources only names'],
  [
    'src/resources/collection/update-many.ts',
    'one operation, as its neighbours are, which the list only names',
  ],
  ['src/resources/routes.ts', 'the routes of a feature, which stand in its folder'],
  ['src/observe/developer-log.ts', 'reads every kind of observation, which the command does not know'],
  ['src/tunnel/tunnel.ts', 'composes a feature in its folder, so that compose.ts names one part'],
  [
    'src/webhooks/sending/fan-out/directory.ts',
    'the rule by which memory follows the store, apart from the list of a sender’s parts',
  ],
  [
    'src/webhooks/signature/jwt.ts',
    'JSON Web Tokens are a standard of their own beside the rules of signed fields',
  ],
]);
