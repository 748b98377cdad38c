/**
 * Secrets in files: `NAME_FILE` names a file with the value of `NAME`, as orchestrators mount secrets. No message repeats the content of a
 * file.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { secretKeyLines } from './refusals.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const suffix = '_FILE';
const finalLineBreak = /\r?\n$/;
const bytesMax = 65_536;

/**
 * The environment, with the content of each such file under the name of its secret.
 * @param isSecret whether a variable, without the suffix, holds a secret
 * @param mistakes receives a sentence for each unusable file
 */
export function withSecretFiles(
  environment: Environment,
  isSecret: (variable: string) => boolean,
  mistakes: string[],
): Environment {
  const found: Record<string, string | undefined> = { ...environment };
  for (const [variable, path] of Object.entries(environment)) {
    if (!variable.endsWith(suffix) || path === undefined || path === '') continue;
    const name = variable.slice(0, -suffix.length);
    if (!isSecret(name)) continue;
    delete found[variable];
    if ((environment[name] ?? '') !== '') {
      mistakes.push(`${name} and ${variable} are both set; set only one of them`);
      continue;
    }
    const content = contentOf(path);
    if ('fault' in content) mistakes.push(`${variable} names the file ${path}, which ${content.fault}`);
    else found[name] = content.text;
  }
  takeKeyFile(found);
  return found;
}

/** The program's own `secret.key` has a comment, and after a rotation the keys that are still in use as well. */
function takeKeyFile(found: Record<string, string | undefined>): void {
  const { COMITY_SECRET_KEY: key = '', COMITY_SECRET_KEY_PREVIOUS: previous = '' } = found;
  const [first, ...others] = secretKeyLines(key);
  const older = [...others, ...secretKeyLines(previous)];
  if (key.startsWith('#') || others.length > 0) found.COMITY_SECRET_KEY = first;
  if (previous.startsWith('#') || older.length > 1 || others.length > 0)
    found.COMITY_SECRET_KEY_PREVIOUS = older.join(',');
}

function contentOf(path: string): { readonly text: string } | { readonly fault: string } {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    if (fstatSync(file).isDirectory()) return { fault: 'is a folder' };
    const octets = Buffer.alloc(bytesMax + 1);
    let read = 0;
    for (let more = -1; more !== 0 && read < octets.length; read += more) {
      more = readSync(file, octets, read, octets.length - read, null);
    }
    if (read > bytesMax) return { fault: `is longer than ${bytesMax} bytes` };
    const text = octets.toString('utf8', 0, read).replace(finalLineBreak, '');
    return text === '' ? { fault: 'is empty' } : { text };
  } catch (error) {
    return { fault: `cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
