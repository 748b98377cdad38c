/** Declares `comity import` and `comity export`, whose code is loaded when one is called. */
import { type Command, Option } from 'commander';
import type { Finish } from '../failure.ts';
import { commaList, wholeNumber } from '../option-values.ts';
import { administratorKeyHelp, type Given, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type { ExportArguments } from './export-documents.ts';
import type { ImportArguments } from './import-documents.ts';

const batchMost = 1000;

export function declareTransfer(program: Command, terminal: Terminal, finish: Finish): void {
  declareImport(program, terminal, finish);
  declareExport(program, terminal, finish);
}

function declareImport(program: Command, terminal: Terminal, finish: Finish): void {
  withServer(program.command('import'))
    .description('create documents on a running server from NDJSON, a document a line')
    .argument('<file>', 'the file, or - for stdin')
    .option('--collection <name>', 'the collection; by default the name of the file (tickets.ndjson)')
    .addOption(
      new Option('--existing <what>', 'what to do with a document whose id exists')
        .choices(['skip', 'update', 'refuse'])
        .default('skip'),
    )
    .option('--no-events', 'append no events, so that nothing is sent to webhooks and streams')
    .option('--batch <number>', 'documents of one request', wholeNumber(1, batchMost), 500)
    .addHelpText(
      'after',
      '\nA line may have id, createdAt, updatedAt and owner, as "comity export" writes them.' +
        '\nRun it again after an interruption: what is there is skipped. Lines without an id are created again.' +
        '\nRefused lines are printed with their number; the others are imported, and the exit code is 1.' +
        `\n${administratorKeyHelp.trim()}`,
    )
    .action(async (file: string, { json = false, ...options }: Given<ImportArguments>) => {
      const { importDocuments } = await import('./import-documents.ts');
      finish(await importDocuments(terminal, file, options, json));
    });
}

function declareExport(program: Command, terminal: Terminal, finish: Finish): void {
  withServer(program.command('export'))
    .description('write all documents of a collection on a running server as NDJSON or CSV')
    .argument('<name>', 'the collection')
    .addOption(
      new Option('--format <format>', 'form of the documents').choices(['ndjson', 'csv']).default('ndjson'),
    )
    .option('--filter <query>', 'only documents that match, as in a query string: status=open&hours[gt]=2')
    .option('--columns <names>', 'columns of CSV; by default every member of any document', commaList)
    .option('-o, --output <file>', 'the file, which must not exist yet; stdout by default')
    .addHelpText(
      'after',
      '\nThe documents come by id, each once, as they are stored, with their owner.' +
        '\n"comity import" reads NDJSON back, into either store.' +
        `\n${administratorKeyHelp.trim()}`,
    )
    .action(async (collection: string, { json = false, ...options }: Given<ExportArguments>) => {
      const { exportDocuments } = await import('./export-documents.ts');
      finish(await exportDocuments(terminal, collection, options, json));
    });
}
