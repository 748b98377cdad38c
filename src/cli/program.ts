/**
 * Declares the subcommands of the command line. The code of each is loaded when it is called, so that none slows down
 * the start of the others.
 */
import { Command, CommanderError, type OutputConfiguration } from 'commander';
import type { ConductOptions } from '../../conduct/command.ts';
import type { WrittenSettings } from '../config/load-settings.ts';
import { packageVersion } from '../package-version.ts';
import { type DeclaredCommand, declareCommand, type OptionRow, yesOption } from './declare-command.ts';
import { declareEnvironmentFiles } from './environment-file.ts';
import { exitCodeOf, exitCodes, type Finish, failureText } from './failure.ts';
import { wholeNumber } from './option-values.ts';
import { keys, users } from './remote/account-commands.ts';
import { endpoints } from './remote/endpoint-commands.ts';
import { jobs, subscribers } from './remote/function-commands.ts';
import { received, senders } from './remote/incoming-commands.ts';
import { deliveries, events, mails } from './remote/outgoing-commands.ts';
import type { Noun, RemoteCommand, Use } from './remote/run-remote.ts';
import { calling, exporting, importing, listening, release } from './remote/single-commands.ts';
import type { KeyUse } from './server-client.ts';
import type { Output, Terminal } from './terminal.ts';

const exitCodeHelp = `
Exit codes:
  0    done
  1    failed
  2    the command line, a setting or the configuration is wrong
  3    "migrate --dry-run" found something to do
  4    the store is damaged, or octets of files are missing or damaged
  5    documents in the store do not fit the configuration, or a migration is pending
  70   an uncaught error ended "serve", after it had drained
  130  a second signal ended "serve" before it had drained

Every setting is an environment variable, such as COMITY_PORT=8080; an option outranks it.
Commands read variables from .env of the working directory too, or from --env; "serve"
only with --env. Variables that are set win.
COMITY_LOG_LEVEL=debug shows the stack of an error.`;

/** Runs one command line. Never throws: failures go to stderr and into the exit code. */
export async function runProgram(argv: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = exitCodes.done;
  const program = declareProgram(terminal, (code) => {
    exitCode = code;
  });
  return failureExit(terminal, async () => {
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  });
}

/** Prints what a command throws. @returns the exit code */
export async function failureExit(terminal: Terminal, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    // Commander has printed its message; 0 is --help or --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    terminal.err(failureText(error, terminal.environment.COMITY_LOG_LEVEL === 'debug'));
    return exitCodeOf(error);
  }
}

/** In the order of the help. */
export const remoteCommands = [
  ...[importing, exporting],
  ...[users, keys, endpoints, deliveries, events, listening, senders, received, mails, subscribers, jobs],
  calling,
] as const;

function declareProgram(terminal: Terminal, finish: Finish): Command {
  const program = new Command('comity')
    .description('An HTTP backend whose conduct is exact: declare collections in one file, serve them.')
    .version(packageVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', exitCodeHelp)
    .showHelpAfterError('(see "comity --help")')
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput(helpOutput(terminal));
  const declare = (parent: Command, command: LocalCommand): void =>
    declareCommand(parent, command, async ({ options, names: [name = ''] }) => {
      finish(await command.run(terminal, options as never, name));
    });
  for (const each of localCommands) declare(program, each);
  declareRemote(program, terminal, finish, [release]);
  declare(program, migrating);
  const secrets = program.command('secrets');
  declare(secrets.description('manage the key that encrypts the secrets in the store'), rotatingSecrets);
  const files = program.command('files').description('check and move the octets of files');
  for (const each of [checkingFiles, movingFiles]) declare(files, each);
  declareRemote(program, terminal, finish, remoteCommands);
  declareEnvironmentFiles(program, terminal);
  return program;
}

/** Columns of the help if it does not go to a terminal. */
const helpColumns = 80;

/** Streams and widths for commander's own output. */
function helpOutput({ stdout, stderr }: Terminal): OutputConfiguration {
  const widthOf = ({ isTTY, columns = helpColumns }: Output): number =>
    isTTY === true ? columns : helpColumns;
  return {
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(text),
    getOutHelpWidth: () => widthOf(stdout),
    getErrHelpWidth: () => widthOf(stderr),
  };
}

/** A command that reads the configuration or opens the store, in this process. */
type LocalCommand = DeclaredCommand & {
  /** @param name its argument */
  readonly run: (terminal: Terminal, options: never, name: string) => Promise<number>;
};

type JsonArguments = WrittenSettings & { readonly json?: boolean };

const configOption: OptionRow = [
  '-c, --config <path>',
  'configuration file (COMITY_CONFIG; ./comity.config.ts)',
];
const dataOption: OptionRow = ['--data <folder>', 'folder of the embedded store (COMITY_DATA; ./data)'];
const jsonOption: OptionRow = ['--json', 'print one JSON object at the end'];

const listeningOptions: readonly OptionRow[] = [
  configOption,
  ['--host <address>', 'address to listen on (COMITY_HOST; 127.0.0.1)'],
  ['-p, --port <number>', 'port to listen on, 0 for any free one (COMITY_PORT; 4000)'],
  dataOption,
];

type ServeArguments = WrittenSettings & { readonly migrate?: boolean; readonly unmigrated?: boolean };

const serving: LocalCommand = {
  name: 'serve',
  description: 'serve the collections of a configuration until SIGTERM or SIGINT',
  options: [
    ...listeningOptions,
    ['--migrate', 'make pending migrations of documents first (COMITY_MIGRATE_AT_START)'],
    ['--unmigrated', 'serve documents that may not fit the configuration (COMITY_SERVE_UNMIGRATED)'],
  ],
  help:
    '\nPrints "comity listening on URL" on stdout once it answers; logs go to stderr.' +
    '\nThe first SIGTERM or SIGINT lets requests under way end (COMITY_DRAIN_DELAY_SECONDS later), then exits 0; a second one exits 130 at once.' +
    '\nAn uncaught error is logged, ends the program in the same way, and exits 70, so that a supervisor restarts it.' +
    '\nExits 5 if documents in the store may not fit the configuration, and says what to run.',
  run: async (terminal, { migrate, unmigrated, ...options }: ServeArguments) => {
    const { serve } = await import('./serve.ts');
    const chosen = {
      ...(migrate === true && { migrateAtStart: 'on' }),
      ...(unmigrated === true && { serveUnmigrated: 'on' }),
    };
    return serve(terminal, { ...options, ...chosen });
  },
};

const developing: LocalCommand = {
  name: 'dev',
  description: 'serve while you write: restarts when the configuration or what it imports changes',
  options: listeningOptions,
  help:
    '\nReads .env again at each restart; a change of it is one.' +
    '\nPrints each request in a line, with its trace if it failed, and errors of your functions with their place.' +
    '\nKeeps running when the configuration has mistakes, and shows them. The data stays between restarts.',
  run: async (terminal, options: WrittenSettings) => (await import('./dev/dev.ts')).dev(terminal, options),
};

const initializing: LocalCommand = {
  name: 'init',
  description: 'create a project with a small configuration, ready to serve',
  arguments: [['[folder]', 'its folder; created if missing', '.']],
  options: [['--node <npm|system>', 'install Node as an npm package, or use that of the machine']],
  help: '\nNever overwrites a file. Without --node the project brings a Node if that of the machine is too old.',
  run: async (terminal, { node }: { readonly node?: string }, folder) =>
    (await import('./init.ts')).init(terminal, folder, node),
};

const seeding: LocalCommand = {
  name: 'seed',
  description: 'fill the store from a file, without a server',
  arguments: [['<file>', 'a module that exports a function, or NDJSON with a document a line']],
  options: [configOption, dataOption],
  help:
    '\nA module: export default async ({ resources }) => { await resources.tasks.create({ ... }) }' +
    '\nA line: {"collection":"tasks","id":"first","fields":{...}}. With an id it replaces the document,' +
    '\nso that the file can be run again. Every rule of the collections applies, and every event is written.',
  run: async (terminal, options: WrittenSettings, file) =>
    (await import('./seed.ts')).seed(terminal, file, options),
};

const checking: LocalCommand = {
  name: 'check',
  description: 'check the settings and the configuration, or the store',
  options: [
    configOption,
    ['--store', 'read the whole embedded store, with or without a running server; exits 4 if it is damaged'],
    dataOption,
    ['--json', 'print one JSON object'],
  ],
  run: async (
    terminal,
    { json = false, store = false, ...options }: JsonArguments & { readonly store?: boolean },
  ) => {
    if (store) return (await import('./check.ts')).checkStore(terminal, options, json);
    return (await import('./check.ts')).check(terminal, options, json);
  },
};

const describing: LocalCommand = {
  name: 'openapi',
  description: 'print the OpenAPI document of a configuration, without a server',
  options: [
    configOption,
    [
      '--part <part>',
      'operator: keys, endpoints, deliveries and the program, in place of what clients use',
      { choices: ['operator'] },
    ],
  ],
  help: '\nThe document is that of /openapi.json. It needs no store: it reads the settings, and writes nothing.',
  run: async (terminal, { part, ...options }: WrittenSettings & { readonly part?: string }) =>
    (await import('./describe.ts')).describeApi(terminal, options, part),
};

const typing: LocalCommand = {
  name: 'types',
  description: 'print the TypeScript types of a configuration, for clients',
  options: [configOption],
  help:
    '\nPrints an interface Api for createClient<Api> of comity/client, and the types of documents, inputs and patches.' +
    '\nThey import nothing: comity types > src/api.ts. Print them again after a change of the configuration.',
  run: async (terminal, options: WrittenSettings) =>
    (await import('./describe.ts')).describeTypes(terminal, options),
};

const judging: LocalCommand = {
  name: 'conduct',
  description: 'judge the HTTP conduct of any API, clause by clause',
  arguments: [['[url]', 'the API: its OpenAPI document, its origin, or a collection']],
  options: [
    ['--target <file>', 'a JSON file: {"collection", "sample", "change", "headers"}'],
    ['--header <field...>', 'a field of every request, such as "Authorization: Bearer ..."'],
    ['--receiver <url>', 'judge a receiver of webhooks, by deliveries of --scheme and --secret'],
    ['--sender', 'listen for a sender of webhooks, and judge it'],
    ['--scheme <name>', 'how a receiver verifies: standard, svix, timestamped, stripe, plain or github'],
    ['--secret <text>', 'the secret of a receiver or a sender'],
    ['--secrets <file>', 'a secret a line, read at the end: for a sender that makes them'],
    [
      '-p, --port <number>',
      'port to listen on for a sender (any free one)',
      { parse: wholeNumber(0, 65_535) },
    ],
    ['--seconds <number>', 'how long to listen for a sender', { parse: wholeNumber(1, 86_400), value: 60 }],
    ['--only <names...>', 'clauses or groups'],
    ['--list', 'print the clauses'],
    ['--explain <id>', 'say what a clause judges, and by which section'],
    ['--json', 'print the report as JSON'],
    ['--junit <file>', 'write the report for CI servers'],
    ['--html <file>', 'write the report as a page'],
    ['--verbose', 'name the clauses that do not apply, too'],
    ['--insecure', 'take a certificate that no authority signed'],
    ['--yes', 'write to a server of another machine without asking'],
  ],
  help:
    '\nIt creates documents, and removes them. Exits 0 if no clause fails, 1 if some do, and 2 if nothing could be judged.' +
    '\nThe package comity-conduct has the same command without the server.',
  run: async (terminal, options: ConductOptions, url) => {
    const { runConduct } = await import('../../conduct/command.ts');
    const { screenOf } = await import('../../conduct/screen.ts');
    return runConduct(url === '' ? undefined : url, options, screenOf(terminal, terminal.environment));
  },
};

type BackupArguments = JsonArguments & { readonly files: boolean; readonly lostFiles?: boolean };

const backingUp: LocalCommand = {
  name: 'backup',
  description: 'copy the store into one file, with or without a running server',
  arguments: [['<file>', 'the copy; must not exist yet']],
  options: [
    dataOption,
    ['--no-files', 'leave the octets of files where they are'],
    ['--lost-files', 'go on without octets that are missing or damaged, and name them'],
    jsonOption,
  ],
  help:
    '\nThe copy is consistent: it contains every write that was acknowledged before the copy began.' +
    '\nWith COMITY_DATABASE_URL it copies the store in that database, unless --data names a folder.' +
    '\nOctets of files go into the folder <file>.files, by hard link where the file system permits it; a repeated' +
    '\nbackup continues an interrupted one. "comity restore" restores both, into either store.',
  run: async (terminal, { json = false, files, lostFiles = false, ...options }: BackupArguments, file) =>
    (await import('./backup.ts')).backup(terminal, file, options, { json, files, lostFiles }),
};

type RestoreArguments = JsonArguments & {
  readonly holdDeliveries?: boolean;
  readonly lostFiles?: boolean;
};

const restoring: LocalCommand = {
  name: 'restore',
  description: 'restore a copy by "backup" into an empty store, embedded or PostgreSQL',
  arguments: [['<file>', 'the copy, of either store']],
  options: [
    configOption,
    dataOption,
    [
      '--hold-deliveries',
      'send no delivery and no mail before "comity release"; default for a copy in another place',
    ],
    ['--no-hold-deliveries', 'send what is due when a server starts'],
    ['--lost-files', 'restore without octets of files that are missing or damaged, and name them'],
    jsonOption,
  ],
  help:
    '\nWith COMITY_DATABASE_URL it restores into that database, unless --data names a folder.' +
    '\nA store that contains rows is refused, and an interrupted restore leaves the store empty.' +
    '\nOctets of files go from <file>.files to the place that COMITY_FILES_URL names, before the store is there.',
  run: async (
    terminal,
    { json = false, holdDeliveries: hold, lostFiles = false, ...options }: RestoreArguments,
    file,
  ) =>
    (await import('./backup.ts')).restore(terminal, file, options, {
      json,
      version: packageVersion(),
      ...{ hold, lostFiles },
    }),
};

type MigrateArguments = JsonArguments & {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly keepIndexes?: boolean;
  readonly backup?: string;
};

const migrating: LocalCommand = {
  name: 'migrate',
  description: 'bring the documents in the store, and the schema in PostgreSQL, to the configuration',
  options: [
    configOption,
    dataOption,
    ['--dry-run', 'only show what would be done, and which documents do not fit; exits 3 if there is any'],
    ['--backup <file>', 'copy the store into a file first; there is no other way back'],
    ['--keep-indexes', 'drop no index that is no longer declared, while old processes read by it'],
    yesOption,
    ['--json', 'print one JSON object at the end; never asks'],
  ],
  help:
    '\nMakes the migrations of the configuration, in batches; an interrupted one continues when it is run again.' +
    '\nOn PostgreSQL servers keep using the store, no row is lost and no server is locked out; indexes that are no' +
    '\nlonger declared are dropped. COMITY_DATABASE_URL must lead to PostgreSQL itself here, not to a pooler.' +
    '\nThe embedded store belongs to one process: stop its server, or start it with --migrate.',
  run: async (
    terminal,
    { json = false, dryRun = false, yes = false, keepIndexes = false, backup, ...rest }: MigrateArguments,
  ) => {
    const { migrate } = await import('./migrate.ts');
    return migrate(terminal, rest, { json, dryRun, yes, keepIndexes, backup }, packageVersion());
  },
};

type CheckFilesArguments = JsonArguments & { readonly repair?: boolean; readonly yes?: boolean };

const checkingFiles: LocalCommand = {
  name: 'check',
  description: 'compare the files of the store with their octets; exits 4 if some are missing or damaged',
  options: [
    configOption,
    dataOption,
    ['--repair', 'remove octets that no row names, and files that no document has'],
    yesOption,
    ['--json', 'print one JSON object'],
  ],
  help:
    '\nReads every octet, with or without a running server. It changes no document. --repair needs the embedded store' +
    '\nfor itself, and a place that no other store uses: what it removes is what this store does not name.',
  run: async (terminal, { json = false, repair = false, yes = false, ...options }: CheckFilesArguments) =>
    (await import('./files.ts')).checkStoredFiles(terminal, options, { json, repair, yes }),
};

const movingFiles: LocalCommand = {
  name: 'move',
  description: 'copy the octets of all files to another place',
  options: [
    dataOption,
    ['--to <url>', 'the other place, as in COMITY_FILES_URL', { isRequired: true }],
    ['--json', 'print one JSON object at the end'],
  ],
  help:
    '\nCompares each file with its digest, and passes over what is there: run it while servers run, stop them, run it' +
    '\nagain, and start them with the other COMITY_FILES_URL. Two buckets must take the same key.' +
    '\nThe files stay in the first place as well.',
  run: async (terminal, { json = false, to, ...options }: JsonArguments & { readonly to: string }) =>
    (await import('./files.ts')).moveFiles(terminal, options, { json, to }),
};

const rotatingSecrets: LocalCommand = {
  name: 'rotate',
  description: 'encrypt every secret with another key',
  options: [
    configOption,
    ['--data <folder>', 'folder of the embedded store and of the key file (COMITY_DATA; ./data)'],
    jsonOption,
  ],
  help:
    '\nWithout COMITY_SECRET_KEY it generates a new key in the key file. Otherwise give the new key in COMITY_SECRET_KEY' +
    '\nand the old one in COMITY_SECRET_KEY_PREVIOUS, to every server first. Servers on PostgreSQL keep serving.' +
    '\nAn interrupted rotation continues when it is run again.',
  run: async (terminal, { json = false, ...options }: JsonArguments) =>
    (await import('./secrets.ts')).rotateSecrets(terminal, options, json),
};

/** In the order of the help. */
const localCommands = [
  ...[
    serving,
    developing,
    initializing,
    seeding,
    checking,
    describing,
    typing,
    judging,
    backingUp,
    restoring,
  ],
] as const;

/** Enough for a terminal; a program that needs more uses the API. */
const listItemsMax = 100_000;

const limitOption: OptionRow = [
  '--limit <number>',
  'how many at most',
  { parse: wholeNumber(1, listItemsMax), value: 100 },
];

const keyHelp: Readonly<Record<KeyUse, string>> = {
  administrator: '\nUses the administrator key in COMITY_ADMIN_KEY.',
  webhooks: '\nUses the key in COMITY_KEY, which needs the scope webhooks, or the one in COMITY_ADMIN_KEY.',
  any: '\nUses the key in COMITY_KEY, or the one in COMITY_ADMIN_KEY, or none.',
};

const serverOptions: readonly OptionRow[] = [
  ['--url <url>', 'the running server (COMITY_URL; http://127.0.0.1:4000)'],
  ['--json', 'print JSON'],
];

/** Declares nouns, and commands without one. */
function declareRemote(
  program: Command,
  terminal: Terminal,
  finish: Finish,
  declared: readonly (Noun | (RemoteCommand & Use))[],
): void {
  const declare = (parent: Command, command: RemoteCommand, use: Use): void =>
    declareCommand(parent, { ...command, options: optionsOf(command) }, async (given) => {
      const { runRemote } = await import('./remote/run-remote.ts');
      finish(await runRemote(terminal, command, use, given));
    });
  for (const each of declared) {
    const help = keyHelp[each.key];
    if ('commands' in each) {
      const noun = program.command(each.name).description(each.description).addHelpText('after', help);
      for (const command of each.commands) declare(noun, command, each);
    } else declare(program, { ...each, help: `${each.help ?? ''}${help}` }, each);
  }
}

/** In the order of the help. */
function optionsOf({ options = [], confirms, lists }: RemoteCommand): readonly OptionRow[] {
  return [
    ...serverOptions,
    ...(confirms === undefined ? [] : [yesOption]),
    ...options,
    ...(lists === 'newest' ? [limitOption] : []),
  ];
}
