/** Commands for a running server that belong to no noun. Their code is loaded when one is called. */
import type { ShownHold } from '../../hold/hold.ts';
import { schemes } from '../../model/endpoint.ts';
import { commaList } from '../option-values.ts';
import type { Call, RemoteCommand, Use } from './run-remote.ts';

type SingleCommand = RemoteCommand & Use;

export const release: SingleCommand = {
  name: 'release',
  description: 'send the deliveries and mails that a restored copy holds',
  key: 'administrator',
  finds: 'GET /hold',
  request: 'POST /hold/release',
  content: {},
  print: (_, { found: before }: Call<object, ShownHold>) =>
    before.held ? 'Deliveries and mails are sent from now on.' : 'Nothing was held.',
};

export const importing: SingleCommand = {
  name: 'import',
  description: 'write documents on a running server from CSV, NDJSON or a JSON array',
  key: 'administrator',
  arguments: [['<file>', 'the file, or - for stdin']],
  options: [
    ['--collection <name>', 'the collection; by default the name of the file (tickets.ndjson)'],
    [
      '--format <format>',
      'csv, ndjson or json; by default by the ending of the file',
      { choices: ['csv', 'ndjson', 'json'] },
    ],
    [
      '--mode <mode>',
      'what a record is to a document that exists',
      { choices: ['create', 'replace', 'merge', 'upsert'], value: 'create' },
    ],
    ['--key <fields>', 'the members by which records name documents in the other modes: sku,tenantId (id)'],
    [
      '--existing <what>',
      'what to do with a document whose id exists, in the mode create',
      { choices: ['skip', 'update', 'refuse'], value: 'skip' },
    ],
    [
      '--columns <names>',
      'the members that the columns of CSV are, in place of the names in its header; an empty one is left out: sku,,price',
    ],
    ['--no-header', 'CSV without a header; --columns says what its columns are'],
    ['--no-events', 'append no events, so that nothing is sent to webhooks and streams'],
    ['--dry-run', 'count and list faults, and write nothing'],
    ['--atomic', 'write all records or none, up to COMITY_BULK_ITEMS_MAX of the server'],
  ],
  help:
    '\nA record may have id, createdAt, updatedAt and owner, as "comity export" writes them.' +
    '\nRun it again after an interruption: what is there is skipped. Records without an id are created again.' +
    '\nFaults are printed with their line; other records are written, and the exit code is 1.',
  run: async (call) => (await import('./transfer.ts')).importDocuments(call),
};

export const exporting: SingleCommand = {
  name: 'export',
  description: 'write all documents of a collection on a running server as NDJSON or CSV',
  key: 'administrator',
  arguments: [['<name>', 'the collection']],
  options: [
    ['--format <format>', 'form of the documents', { choices: ['ndjson', 'csv'], value: 'ndjson' }],
    ['--filter <query>', 'only documents that match, as in a query string: status=open&hours[gt]=2'],
    ['--columns <names>', 'columns of CSV; by default every member of any document', { parse: commaList }],
    [
      '--no-guard',
      'write texts that a spreadsheet would run (=1+1) to CSV without an apostrophe before them',
    ],
    ['--bom', 'begin CSV with a byte order mark, by which spreadsheets know UTF-8'],
    ['-o, --output <file>', 'the file, which must not exist yet; stdout by default'],
    ['--no-files', 'write no octets of files into the folder beside the file (FILE.files)'],
  ],
  help:
    '\nThe documents come by id, each once, as they are stored, with their owner.' +
    '\n"comity import" reads NDJSON back, into either store, with the octets beside it.',
  run: async (call) => (await import('./transfer.ts')).exportDocuments(call),
};

export const listening: SingleCommand = {
  name: 'listen',
  description: 'forward the events of a running server to a program on this machine, signed as webhooks',
  key: 'webhooks',
  options: [
    ['--forward-to <url>', 'the program, such as http://127.0.0.1:3000/webhooks', { isRequired: true }],
    ['--events <patterns>', 'which events: products.created, products.* ... (*)', { parse: commaList }],
    ['--scheme <scheme>', 'how they are signed', { choices: schemes, value: 'standard' }],
    ['--since <id>', 'begin after this event of the log, evt_... (now)'],
  ],
  help:
    '\nThe secret is generated for this run and printed once, unless COMITY_LISTEN_SECRET is set.' +
    '\nForwards the events that the key may read. Ctrl-C ends it with exit code 0.',
  run: async (call) => (await import('./listen.ts')).listen(call),
};

export const calling: SingleCommand = {
  name: 'call',
  description: 'call an action of the configuration, and print its answer',
  key: 'any',
  arguments: [['<name>', 'its path below the base: ping, tickets/export, tickets/ID/merge']],
  options: [
    ['--input <json>', 'its input: a JSON object, @file, or - for stdin'],
    ['--method <method>', 'its method, where the path has several'],
  ],
  help:
    '\nPrints JSON in lines, and other content as it comes; --json prints that as base64.' +
    '\nExits 1 if the action was refused.',
  run: async (call) => (await import('./call-action.ts')).callAction(call),
};
