/**
 * `comity check`: finds every mistake in settings and configuration without starting anything, and says what the documents of the store, if
 * there is one, need before they are served.
 */
import { ConfigurationError } from '../config/inspection.ts';
import { type JobTiming, jobTimes } from '../config/jobs.ts';
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Rule } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import { exitCodes } from './failure.ts';
import { lookAtStore } from './migrate-documents.ts';
import { type Reading, readConfiguration, tellWarnings } from './read-configuration.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

/** Resolves with 0 if there are no mistakes. With `json`, mistakes are printed as JSON too, and the exit code is 2. */
export async function check(terminal: Terminal, options: WrittenSettings, json: boolean): Promise<number> {
  try {
    const reading = await readConfiguration(terminal.environment, options);
    const documents = await lookAtDocuments(reading);
    if (json) terminal.out(JSON.stringify({ ...reportOf(reading), documents }, undefined, 2));
    else {
      tell(terminal, reading);
      tellDocuments(terminal, documents);
    }
    return exitCodes.done;
  } catch (error) {
    if (!json || !(error instanceof ConfigurationError)) throw error;
    terminal.out(JSON.stringify({ sound: false, mistakes: error.mistakes }, undefined, 2));
    return exitCodes.usage;
  }
}

type DocumentsLook =
  /** A sentence for each collection whose documents may not fit, or have a pending migration. */
  { readonly pending: readonly string[] } | { readonly notLookedAt: string };

/** Codes of stores that this program must not touch, whatever the configuration is. */
const foreign = ['schema_too_new', 'store_unknown_database'];

/** A configuration may be checked where its store cannot be reached. */
async function lookAtDocuments(reading: Reading): Promise<DocumentsLook> {
  try {
    const { lines, duplicates, searches } = await lookAtStore(reading);
    return { pending: [...lines, ...duplicates, ...searches] };
  } catch (error) {
    if (error instanceof Error && 'code' in error && foreign.includes(String(error.code)))
      throw startFailure(error, reading.settings);
    return { notLookedAt: error instanceof Error ? error.message : String(error) };
  }
}

function tellDocuments(terminal: Terminal, documents: DocumentsLook): void {
  if ('notLookedAt' in documents) {
    terminal.err(`comity: the documents in the store were not looked at: ${documents.notLookedAt}`);
    return;
  }
  if (documents.pending.length === 0) return;
  terminal.out('\n  documents in the store');
  for (const sentence of documents.pending) terminal.out(`    ${sentence}`);
}

function reportOf(reading: Reading): Record<string, unknown> {
  const { configuration, settings, warnings } = reading;
  const { title, base, apiVersion, collections } = configuration;
  return {
    sound: true,
    config: settings.config,
    title,
    apiVersion,
    warnings,
    collections: [...collections.values()].map((collection) => ({
      name: collection.name,
      path: `${base}/${collection.name}`,
      fields: [...collection.fields.values()].map(({ name, type }) => ({ name, type })),
      required: [...collection.required],
      access: collection.access,
    })),
    ...functionsOf(reading),
  };
}

/** What runs besides the collections, as `--json` reports it. */
function functionsOf({ configuration, settings, senderSecrets }: Reading) {
  const { actions, base, jobs, mail, senders, subscribers } = configuration;
  const now = Date.now();
  return {
    actions: actions.map(({ name, method, pattern, rule }) => ({
      ...{ name, method, path: `${base}${pattern}`, access: rule },
    })),
    subscribers: [...subscribers.values()].map(({ name, events, orderBy }) => ({
      ...{ name, events, isOrdered: orderBy !== undefined },
    })),
    jobs: [...jobs.values()].map(({ name, timing, ifMissed }) => ({
      ...{ name, ...timing, ifMissed, nextTimes: nextTimes(timing, now) },
    })),
    senders: [...senders.values()].map(({ name, preset, handOn, secretVariable }) => ({
      ...{ name, preset, path: `${base}/webhooks/${name}`, handOn: handOn.kind },
      ...{ secretVariable, hasSecret: senderSecrets.has(secretVariable) },
    })),
    mail: {
      templates: [...mail.templates.keys()],
      // Without its secret parts.
      server: settings.smtpUrl === undefined ? null : new URL(settings.smtpUrl).host,
    },
  };
}

const timesShown = 3;

function nextTimes(timing: JobTiming, from: number): readonly string[] {
  const { after } = jobTimes(timing);
  const times: string[] = [];
  for (let at = after(from); at !== undefined && times.length < timesShown; at = after(at))
    times.push(new Date(at).toISOString());
  return times;
}

function tell(terminal: Terminal, reading: Reading): void {
  const { configuration, settings, warnings } = reading;
  tellWarnings(terminal, warnings);
  terminal.out(`${settings.config} is sound. It would serve "${configuration.title}":`);
  for (const collection of configuration.collections.values()) {
    terminal.out(`\n  ${configuration.base}/${collection.name}`);
    for (const [label, text] of detailsOf(collection)) terminal.out(`    ${label.padEnd(8)} ${text}`);
  }
  for (const [heading, lines] of functionLines(reading)) {
    if (lines.length === 0) continue;
    terminal.out(`\n  ${heading}`);
    for (const line of lines) terminal.out(`    ${line}`);
  }
}

function functionLines(reading: Reading): readonly (readonly [heading: string, lines: readonly string[]])[] {
  const { actions, subscribers, jobs, senders, mail } = functionsOf(reading);
  const server = mail.server === null ? 'no mail server' : `sent by ${mail.server}`;
  const timings = [...reading.configuration.jobs.values()].map(({ timing }) => timingText(timing));
  return [
    ['actions', actions.map(({ method, path, access }) => `${method} ${path}, ${ruleText(access)}`)],
    [
      'subscribers',
      subscribers.map(
        ({ name, events, isOrdered }) => `${name}, of ${events.join(', ')}${isOrdered ? ', in order' : ''}`,
      ),
    ],
    [
      'jobs',
      jobs.map(({ name, nextTimes: [next = 'never'] }, index) => `${name}, ${timings[index]}, next ${next}`),
    ],
    [
      'senders',
      senders.map(({ path, preset, handOn, secretVariable, hasSecret }) => {
        const secret = hasSecret ? secretVariable : `${secretVariable} (not set: made at the first start)`;
        return `POST ${path}, ${preset ?? 'own rule'}, ${handOn}, secret ${secret}`;
      }),
    ],
    ['mail templates', mail.templates.map((name) => `${name}, ${server}`)],
  ];
}

function timingText(timing: JobTiming): string {
  if ('cron' in timing) return `${timing.cron} (${timing.timeZone})`;
  return `every ${timing.everyMs / 1000} s`;
}

function detailsOf(collection: Collection): readonly (readonly [label: string, text: string])[] {
  const { access, fields, references, required } = collection;
  const written = [...fields.values()].filter(
    ({ column, path }) => column === undefined && path.length === 1,
  );
  const details: (readonly [string, string])[] = [
    ['fields', written.map(({ name }) => (required.has(name) ? `${name} (required)` : name)).join(', ')],
    ...Object.entries(access).map(([action, rule]) => [action, ruleText(rule)] as const),
  ];
  for (const { field, collection: target } of references) details.push(['refers', `${field} to ${target}`]);
  return details;
}

function ruleText(rule: Rule): string {
  if (typeof rule === 'string') return rule;
  if ('role' in rule) return `role ${rule.role}`;
  if ('scope' in rule) return `scope ${rule.scope}`;
  if ('bearing' in rule) return `${partText(rule.rule)} with the scope ${rule.bearing}`;
  if ('tenantIn' in rule) return `tenant in ${rule.tenantIn}`;
  if ('where' in rule) {
    return Object.entries(rule.where)
      .map(([name, value]) => `${name} is ${JSON.stringify(value)}`)
      .join(' and ');
  }
  if ('anyOf' in rule) return rule.anyOf.map(partText).join(' or ');
  return 'allOf' in rule ? rule.allOf.map(partText).join(' and ') : 'as its function says';
}

/** A rule within another, in brackets where its own words join several. */
function partText(rule: Rule): string {
  const isJoined =
    typeof rule === 'object' &&
    (('anyOf' in rule && rule.anyOf.length > 1) ||
      ('allOf' in rule && rule.allOf.length > 1) ||
      ('where' in rule && Object.keys(rule.where).length > 1));
  return isJoined ? `(${ruleText(rule)})` : ruleText(rule);
}
