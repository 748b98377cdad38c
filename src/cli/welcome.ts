/**
 * The output of `serve` when it is ready. The first line is for programs: it is written whole, and no other line on
 * stdout begins like it. The rest is for a person: the location of the data, the administrator key and the secrets of
 * senders if this start generated them, and three commands to try.
 */
import type { Configuration } from '../config/configuration.ts';
import { permission } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import { anonymous } from '../model/principal.ts';
import type { MadeSecret } from '../webhooks/receiving/sender-secrets.ts';

export type Welcome = {
  readonly url: string;
  /** URL of the TLS port beside it. */
  readonly tlsUrl: string | undefined;
  /** Absolute path of the data folder, or the database. */
  readonly data: string;
  /** The administrator key if this start generated it; never a configured one. */
  readonly adminKey: string | undefined;
  /** Secrets of senders that this start generated; never configured ones. */
  readonly senderSecrets: readonly MadeSecret[];
  readonly configuration: Configuration;
};

const keyField = '-H "X-API-Key: $COMITY_ADMIN_KEY"';
const jsonField = "-H 'Content-Type: application/json'";

/** All lines, with the final line break. */
export function welcomeText(welcome: Welcome): string {
  const lines = [`comity listening on ${welcome.url}`];
  if (welcome.tlsUrl !== undefined) lines.push(`and on ${welcome.tlsUrl}`);
  lines.push('', `Data is kept in ${welcome.data}`);
  if (welcome.adminKey !== undefined) {
    lines.push(
      '',
      'An administrator key was created. It is shown only once; keep it:',
      '',
      `  export COMITY_ADMIN_KEY=${welcome.adminKey}`,
    );
  }
  lines.push(...senderLines(welcome));
  const commands = commandsFor(`${welcome.url}${welcome.configuration.base}`, welcome.configuration);
  if (commands.length > 0) lines.push('', 'To try:', '', ...commands.map((command) => `  ${command}`));
  return `${lines.join('\n')}\n\n`;
}

/** The secrets are base64 and need no quoting in a shell. */
function senderLines({ senderSecrets, configuration, url }: Welcome): readonly string[] {
  if (senderSecrets.length === 0) return [];
  const lines = [
    '',
    'Secrets were generated for senders of webhooks. They are shown only once; give each to its sender:',
    '',
    ...senderSecrets.map(({ variable, secret }) => `  export ${variable}=${secret}`),
  ];
  const signed = senderSecrets.map((made) => signedPost(`${url}${configuration.base}`, made, configuration));
  const command = signed.find((each) => each !== undefined);
  return command === undefined ? lines : [...lines, '', 'Then this posts a signed one:', '', `  ${command}`];
}

/** A message that `openssl` signs; undefined if more than the body is signed, which takes more than a line. */
function signedPost(
  base: string,
  { sender, use, variable }: MadeSecret,
  { senders }: Configuration,
): string | undefined {
  const signature = senders.get(sender)?.rule.signature;
  if (use !== 'receive' || signature?.kind !== 'hmac' || signature.signed !== '{body}') return undefined;
  if (signature.key !== 'text' || signature.encoding !== 'hex') return undefined;
  const made = `printf '{}' | openssl dgst -${signature.hash} -hmac "$${variable}" -r | cut -d' ' -f1`;
  const field = `-H "${signature.header}: ${signature.prefix}$signed"`;
  return `signed=$(${made}); curl -i ${field} ${jsonField} -d '{}' ${base}/webhooks/${sender}`;
}

/** Commands to read, to create and to query. */
function commandsFor(base: string, { collections }: Configuration): readonly string[] {
  const all = [...collections.values()];
  const read = all.find(isPublic) ?? all[0];
  if (read === undefined) return [];
  const made = all.find(({ references, examples }) => references.length === 0 && examples.length > 0);
  const queried =
    all.find((candidate) => isPublic(candidate) && numberField(candidate) !== undefined) ?? read;
  const commands = [`curl ${keyFor(read)}${base}/${read.name}`];
  if (made !== undefined) {
    const body = quoted(JSON.stringify(made.examples[0]));
    commands.push(`curl ${keyField} ${jsonField} -d ${body} ${base}/${made.name}`);
  }
  const query = quoted(JSON.stringify(queryFor(queried)));
  commands.push(`curl -X QUERY ${keyFor(queried)}${jsonField} -d ${query} ${base}/${queried.name}`);
  return commands;
}

function queryFor(collection: Collection): Record<string, unknown> {
  const name = numberField(collection);
  if (name === undefined) return { sort: ['-createdAt'], limit: 5 };
  return { filter: { [name]: { gte: 1 } }, sort: [name], limit: 5 };
}

function numberField({ fields }: Collection): string | undefined {
  for (const { name, type } of fields.values()) if (type === 'number' || type === 'integer') return name;
  return undefined;
}

function keyFor(collection: Collection): string {
  return isPublic(collection) ? '' : `${keyField} `;
}

function isPublic({ access }: Collection): boolean {
  return permission(access.read, 'read', anonymous) === 'granted';
}

/** One word of a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
