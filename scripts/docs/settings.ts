/**
 * Renders docs/reference/settings.md from the table in src/config/settings.ts.
 *
 * Usage: npm run docs
 */
import type { Setting } from '../../src/config/setting.ts';
import { settings, variableOf } from '../../src/config/settings.ts';

export const path = 'docs/reference/settings.md';

const preamble = `# Settings

Rendered from \`src/config/settings.ts\` by \`npm run docs\`.

Each setting is one environment variable, named after it: \`bodyBytesMax\` is \`COMITY_BODY_BYTES_MAX\`. It may also be given in
the configuration, as in \`defineConfig({ settings: { bodyBytesMax: 65536 } })\`. An option of the command line overrides the environment,
the environment overrides the configuration, and an empty variable counts as unset. Commands read variables from a file \`.env\` too, and
\`comity serve\` with \`--env\` ([operations](../guides/operations.md#settings)). Numbers are plain decimal
integers; a switch is \`on\` or \`off\` in the environment and \`true\` or \`false\` in the configuration.

A secret may be a file, as orchestrators mount them: \`COMITY_ADMIN_KEY_FILE=/run/secrets/admin-key\` in place of
\`COMITY_ADMIN_KEY\`. The program ignores one line break at the end of the file, and refuses both variables together. The tables below mark the settings that accept a file.
\`COMITY_OAUTH_<NAME>_CLIENT_SECRET\`, the variables of senders such as \`BILLING_WEBHOOK_SECRET\`, and the variables of commands,
\`COMITY_KEY\` and \`COMITY_LISTEN_SECRET\`, accept one too.

Comity checks every value at the start, reports all mistakes at once and exits with code 2. It logs a warning for an unknown variable
that starts with \`COMITY_\`, and ignores it. An unknown name in \`settings\` of the configuration is a mistake.

The program also reads \`COMITY_OAUTH_<NAME>_...\` ([signing in](../guides/sign-in.md)) and the secrets of senders
([receiving webhooks](../guides/receive-webhooks.md)); commands that call a running server read \`COMITY_URL\`, \`COMITY_KEY\` and \`COMITY_LISTEN_SECRET\`.
`;

/** The whole page, with the final line break. */
export function render(): string {
  const rows = Object.entries<Setting>(settings);
  const sections = [...new Set(rows.map(([, setting]) => setting.section))];
  const tables = sections.map((section) => {
    const lines = rows
      .filter(([, setting]) => setting.section === section)
      .map(([name, setting]) => rowOf(name, setting));
    return `\n## ${section}\n\n| variable | default | values | unit | meaning |\n|---|---|---|---|---|\n${lines.join('\n')}\n`;
  });
  return preamble + tables.join('');
}

function rowOf(name: string, setting: Setting): string {
  return `| \`${variableOf(name)}\` | ${defaultOf(setting)} | ${valuesOf(name, setting)} | ${unitOf(setting)} | ${setting.meaning} |`;
}

function defaultOf(setting: Setting): string {
  if (setting.kind === 'switch') return setting.default ? '`on`' : '`off`';
  if (setting.default === undefined) return 'none';
  return setting.default === '' ? 'empty' : `\`${setting.default}\``;
}

function valuesOf(name: string, setting: Setting): string {
  switch (setting.kind) {
    case 'integer':
      return `${setting.least} to ${setting.most}`;
    case 'switch':
      return '`on`, `off`';
    case 'choice':
      return setting.choices.map((choice) => `\`${choice}\``).join(', ');
    case 'text':
      return `at most ${setting.charactersMax} characters${setting.secret ? `; or a file, \`${variableOf(name)}_FILE\`` : ''}`;
  }
}

function unitOf(setting: Setting): string {
  return setting.kind === 'integer' ? setting.unit : '';
}
